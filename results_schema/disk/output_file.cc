// Checks where an output may go, writes it under a temporary name, syncs it and renames it into place, for single files
// and for folders of files.
#include "results_schema/disk/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <streambuf>
#include <string>
#include <system_error>
#include <utility>

#include "results_schema/disk/files.h"

namespace shardscape::results {

namespace fs = std::filesystem;

namespace {

/// The path that a chain of symbolic links ends at, whether it exists or not.
fs::path behind_links(const fs::path& asked) {
  constexpr int kMostLinks = 40;  // Linux's own limit
  fs::path file = asked;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(file, error)); ++links) {
    if (links == kMostLinks) throw OutputRefused(asked, "is a symbolic link to itself");
    const fs::path target = fs::read_symlink(file, error);
    if (error) fail_with(asked, "can't follow the symbolic link", error.value());
    file = target.is_absolute() ? target : directory_of(file) / target;
  }
  return file;
}

/// Describes something that no output may replace; empty for a regular file.
std::string kind_of_irregular(fs::file_type type) {
  switch (type) {
    case fs::file_type::regular:
      return "";
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::symlink:
      return "a symbolic link";
    default:
      return "something else";
  }
}

void require_writable_folder(const fs::path& asked, const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw StoreError(asked, "the folder " + folder.string() + " does not exist");
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw StoreError(asked, "the folder " + folder.string() + " is not writable");
  }
}

/// Moves `from` to `to` unless `to` exists. Returns 0, or an error number (EEXIST where it does).
int move_to_free_place(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return errno;
  // File systems without that flag (NFS) have hard links, which do not replace a file either.
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  ::unlink(from.c_str());
  return 0;
}

/// Buffers what a stream gets; keeps the system's reason where it cannot be written.
class FileBuffer final : public std::streambuf {
 public:
  explicit FileBuffer(const Descriptor& file) : file_(&file) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  /// The first error, if any.
  [[nodiscard]] const std::optional<std::string>& problem() const { return problem_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  int sync() override {
    const std::span<const char> pending(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    if (problem_) return -1;
    try {
      file_->write(std::as_bytes(pending));
    } catch (const StoreError& error) {
      problem_ = error.reason();
      return -1;
    }
    return 0;
  }

 private:
  const Descriptor* file_;
  std::array<char, std::size_t{1} << 16U> buffer_;
  std::optional<std::string> problem_;
};

}  // namespace

OutputPath::OutputPath(fs::path asked, bool replace, std::span<const fs::path> inputs)
    : asked_(std::move(asked)), replace_(replace) {
  if (!asked_.has_filename()) throw OutputRefused(asked_, "names no file; name one in that folder");
  std::error_code error;
  file_ = behind_links(asked_);
  const bool linked = file_ != asked_;
  const fs::file_status there = fs::symlink_status(file_, error);
  if (fs::exists(there)) {
    const std::string kind = kind_of_irregular(there.type());
    if (!kind.empty()) {
      throw OutputRefused(asked_, (linked ? "is a link to " : "is ") + kind +
                                      ", and only regular files are written; choose another name");
    }
    for (const fs::path& input : inputs) {
      const bool inside = fs::is_directory(input, error) && fs::equivalent(input, folder(), error);
      if (inside || fs::equivalent(input, file_, error))
        throw OutputRefused(
            asked_, "is an input of this very command (" + input.string() + "); choose another output");
    }
    if (!replace_) throw OutputRefused(asked_, "exists; --force replaces it");
  } else if (linked && !replace_) {
    throw OutputRefused(asked_, "exists, a link to " + file_.string() +
                                    ", which does not; --force makes the file that it points to");
  }
  require_writable_folder(asked_, folder());
}

fs::path OutputPath::folder() const { return directory_of(file_); }

void OutputPath::publish(const fs::path& temporary) const {
  sync_file(temporary);
  int error = 0;
  if (replace_) {
    std::error_code ignored;
    const fs::file_status there = fs::symlink_status(file_, ignored);
    const std::string kind = fs::exists(there) ? kind_of_irregular(there.type()) : "";
    if (!kind.empty()) throw StoreError(asked_, "has become " + kind + " during the run, and is left alone");
    if (std::rename(temporary.c_str(), file_.c_str()) != 0) error = errno;
  } else {
    error = move_to_free_place(temporary, file_);
    if (error == EEXIST)
      throw StoreError(asked_,
                       "has appeared during the run, and is not replaced without --force; move it away");
  }
  if (error != 0) fail_with(asked_, "can't be put in place", error);
  sync_directory(folder());
  if (directory_of(temporary) != folder()) sync_directory(directory_of(temporary));
}

// ---- files ----

struct OutputFile::Impl {
  explicit Impl(OutputPath output)
      : path(std::move(output)),
        temporary(temporary_name(path.folder())),
        file(Descriptor::create(temporary)),
        buffer(file),
        stream(&buffer) {}
  ~Impl() {
    std::error_code ignored;
    if (!committed) fs::remove(temporary, ignored);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  OutputPath path;
  fs::path temporary;
  Descriptor file;
  FileBuffer buffer;
  std::ostream stream;
  bool committed = false;
};

OutputFile::OutputFile(OutputPath path) : impl_(std::make_unique<Impl>(std::move(path))) {}
OutputFile::~OutputFile() = default;
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;

std::ostream& OutputFile::stream() { return impl_->stream; }

void OutputFile::commit() {
  impl_->stream.flush();
  if (const auto& problem = impl_->buffer.problem()) throw StoreError(impl_->path.asked(), *problem);
  if (!impl_->stream) throw StoreError(impl_->path.asked(), "can't write");
  impl_->path.publish(impl_->temporary);
  impl_->committed = true;
}

void write_output(const OutputPath& path, std::string_view text) {
  OutputFile file(path);
  file.stream().write(text.data(), static_cast<std::streamsize>(text.size()));
  file.commit();
}

// ---- folders ----

OutputFolder::OutputFolder(fs::path asked) : asked_(std::move(asked)) {
  std::error_code error;
  target_ = behind_links(asked_.has_filename() ? asked_ : asked_.parent_path());
  if (fs::exists(fs::symlink_status(target_, error))) {
    if (!fs::is_directory(target_, error)) throw OutputRefused(asked_, "is a file; name a new folder");
    if (!fs::is_empty(target_, error)) {
      throw OutputRefused(asked_, "is a folder that holds files already; name a new one or empty it");
    }
  }
  require_writable_folder(asked_, directory_of(target_));
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void OutputFolder::fill(const std::function<void(const fs::path&)>& write) {
  make();
  errno = 0;
  try {
    write(temporary_);
  } catch (const std::exception& failure) {
    const int reason = errno;
    // Replaces the temporary name of a file in a message, which says nothing to the user.
    std::string what = failure.what();
    const std::string prefix = temporary_.string() + '/';
    if (what.starts_with(prefix)) what.erase(0, prefix.size());
    if (reason != 0) fail_with(asked_, what, reason);
    throw StoreError(asked_, what);
  }
  commit();
}

void OutputFolder::make() {
  const fs::path name = temporary_name(directory_of(target_));
  std::error_code error;
  if (!fs::create_directory(name, error)) fail_with(asked_, "can't create", error ? error.value() : EEXIST);
  temporary_ = name;
  // Takes all permissions from others, so that nobody can put anything, such as a link, where files are about to be
  // made.
  permissions_ = fs::status(name, error).permissions();
  // Keeps the set-group-id bit, by which files inherit the folder's group.
  if (!error) fs::permissions(name, fs::perms::owner_all | (permissions_ & fs::perms::set_gid), error);
  if (!error && !fs::is_empty(name, error)) error = std::make_error_code(std::errc::file_exists);
  if (error) fail_with(asked_, "can't create", error.value());
}

void OutputFolder::commit() {
  for (const auto& entry : fs::directory_iterator(temporary_)) sync_file(entry.path());
  std::error_code error;
  fs::permissions(temporary_, permissions_, error);
  if (error) fail_with(asked_, "can't be opened to others", error.value());
  sync_directory(temporary_);
  // A folder may replace nothing or an empty folder, never one that has content.
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail_with(asked_, "can't be put in place", errno);
  }
  temporary_.clear();
  sync_directory(directory_of(target_));
}

}  // namespace shardscape::results
