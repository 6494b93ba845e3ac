#include "results_schema/sealed_bytes.h"

#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "results_schema/sha256.h"

namespace shardscape::results {

namespace {

constexpr std::size_t kHashDigits = 64;

constexpr std::string_view kLineStart = "\nsha256:";
constexpr char kLineEnd = '\n';
constexpr std::size_t kLineLength = kLineStart.size() + kHashDigits + 1;

std::string checksum_line(std::string_view hash) { return std::string(kLineStart).append(hash) + kLineEnd; }

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
  // Its end first: a file that says nothing of itself is not read, however large it claims to be.
  std::string line(kLineLength, '\0');
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(size - kLineLength));
  if (!in.read(line.data(), static_cast<std::streamsize>(kLineLength))) return Seal::broken;
  if (!line.starts_with(kLineStart) || !line.ends_with(kLineEnd)) return Seal::none;
  const auto hash = sha256_of_file(file, size - kLineLength);
  return hash && line == checksum_line(*hash) ? Seal::whole : Seal::broken;
}

}  // namespace shardscape::results
