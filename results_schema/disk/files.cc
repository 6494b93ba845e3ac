#include "results_schema/disk/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "results_schema/disk/sha256.h"

namespace shardscape::results {

namespace fs = std::filesystem;

void fail_with(const fs::path& path, const std::string& what, int error) {
  throw StoreError(path, what + ": " + std::generic_category().message(error));
}

Descriptor::Descriptor(fs::path path, int flags)
    : path_(std::move(path)), fd_(::open(path_.c_str(), flags | O_CLOEXEC, 0666)) {
  if (fd_ < 0) fail_with(path_, (flags & O_CREAT) != 0 ? "can't create" : "can't open", errno);
}

Descriptor Descriptor::create(fs::path path) {
  return {std::move(path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW};
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

void Descriptor::write(std::span<const std::byte> bytes) const {
  constexpr std::size_t kPiece = std::size_t{1} << 30U;  // below the 2 GiB that Linux writes at most at once
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kPiece));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with(path_, "can't write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void Descriptor::sync() const {
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) fail_with(path_, "can't sync", errno);
}

void Descriptor::close() {
  if (::close(std::exchange(fd_, -1)) != 0) fail_with(path_, "can't close", errno);
}

fs::path directory_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

void sync_file(const fs::path& path) { Descriptor(path, O_RDONLY).sync(); }
void sync_directory(const fs::path& directory) { Descriptor(directory, O_RDONLY | O_DIRECTORY).sync(); }

fs::path temporary_name(const fs::path& folder) {
  static std::atomic<unsigned> count{0};
  for (;;) {
    const std::string name = fmt::format(".shardscape-{}-{}", ::getpid(), count++);
    const fs::path path = folder / (name + kTemporaryEnding);
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(path, ignored))) return path;
  }
}

void make_free(const fs::path& temporary) { ::unlink(temporary.c_str()); }

namespace {

void put_in_place(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) fail_with(to, "can't be put in place", error.value());
}

constexpr std::size_t kHashDigits = 64;

constexpr std::string_view kLineStart = "\nsha256:";
constexpr char kLineEnd = '\n';
constexpr std::size_t kLineLength = kLineStart.size() + kHashDigits + 1;

std::string checksum_line(std::string_view hash) { return std::string(kLineStart).append(hash) + kLineEnd; }

/// Whether almost nothing of a large file was ever written, so that reading it would take hours for zeros. What
/// append_checksum() was given is written in full, but file systems that compress may keep blocks of zeros as holes.
bool is_hollow(const std::filesystem::path& file, std::uintmax_t size) {
  constexpr std::uintmax_t kSoonRead = std::uintmax_t{1} << 26U, kLeastShare = 1024;
  if (size < kSoonRead) return false;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  std::uintmax_t data = 0;
  off_t end = 0;
  errno = 0;
  while (data * kLeastShare < size) {
    const off_t begin = lseek(descriptor, end, SEEK_DATA);
    if (begin < 0) break;  // no more data (ENXIO), or the file system does not say
    end = lseek(descriptor, begin, SEEK_HOLE);
    if (end <= begin) break;
    data += static_cast<std::uintmax_t>(end - begin);
  }
  const bool hollow = data * kLeastShare < size && errno == ENXIO;
  ::close(descriptor);
  return hollow;
}

}  // namespace

void write_durably(const fs::path& path, std::span<const std::byte> bytes) {
  fs::path temporary = path;
  temporary += kTemporaryEnding;
  make_free(temporary);
  Descriptor file = Descriptor::create(temporary);
  try {
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

void append_checksum(std::vector<std::byte>& bytes) {
  const std::string line =
      checksum_line(sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  const auto added = std::as_bytes(std::span(line));
  bytes.insert(bytes.end(), added.begin(), added.end());
}

Seal seal_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return Seal::broken;
  const auto size = std::filesystem::file_size(file, error);
  if (error) return Seal::broken;
  if (size < kLineLength) return Seal::none;
  // The end is read first: a file without a checksum is not read, however large it claims to be.
  std::string line(kLineLength, '\0');
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(size - kLineLength));
  if (!in.read(line.data(), static_cast<std::streamsize>(kLineLength))) return Seal::broken;
  if (!line.starts_with(kLineStart) || !line.ends_with(kLineEnd)) return Seal::none;
  if (is_hollow(file, size)) return Seal::broken;
  const auto hash = sha256_of_file(file, size - kLineLength);
  return hash && line == checksum_line(*hash) ? Seal::whole : Seal::broken;
}

}  // namespace shardscape::results
