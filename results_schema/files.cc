#include "results_schema/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace shardscape::results {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const fs::path& path, const std::string& what, int error) {
  throw StoreError(path, what + ": " + std::generic_category().message(error));
}

/// An open file descriptor.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail(path_, (flags & O_CREAT) != 0 ? "can't create" : "can't open", errno);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(std::span<const std::byte> bytes) const {
    constexpr std::size_t kPiece = std::size_t{1} << 30U;  // Linux writes at most 2 GiB at once
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kPiece));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path_, "can't write", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  void sync() const {
    if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) fail(path_, "can't sync", errno);
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) fail(path_, "can't close", errno);
  }

 private:
  const fs::path& path_;
  int fd_;
};

void put_in_place(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) fail(to, "can't be put in place", error.value());
}

}  // namespace

fs::path directory_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

void sync_directory(const fs::path& directory) { Descriptor(directory, O_RDONLY | O_DIRECTORY).sync(); }

void write_durably(const fs::path& path, std::span<const std::byte> bytes) {
  fs::path temporary = path;
  temporary += kTemporaryEnding;
  try {
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    file.write(bytes);
    file.sync();
    file.close();
    put_in_place(temporary, path);
  } catch (const StoreError&) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  sync_directory(directory_of(path));
}

void publish(const fs::path& temporary, const fs::path& path) {
  Descriptor(temporary, O_RDONLY).sync();
  put_in_place(temporary, path);
  sync_directory(directory_of(path));
  sync_directory(directory_of(temporary));
}

fs::path dying_folder(const fs::path& folder) {
  fs::path name = folder;
  name += ".deleting";
  return name;
}

void remove_folder(const fs::path& folder) {
  const fs::path dying = dying_folder(folder);
  std::error_code error;
  fs::remove_all(dying, error);
  if (!fs::exists(folder)) return;
  put_in_place(folder, dying);
  fs::remove_all(dying, error);
  if (error) fail(dying, "can't delete", error.value());
}

}  // namespace shardscape::results
