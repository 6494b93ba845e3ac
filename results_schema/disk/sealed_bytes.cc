#include "results_schema/disk/sealed_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "results_schema/disk/sha256.h"

namespace shardscape::results {

namespace {

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
