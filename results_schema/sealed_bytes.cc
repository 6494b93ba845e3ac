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

std::string checksum_line(std::string_view bytes) {
  return std::string(kLineStart) + sha256_hex(bytes) + kLineEnd;
}

}  // namespace

void append_checksum(std::vector<std::byte>& bytes) {
  const std::string line = checksum_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto added = std::as_bytes(std::span(line));
  bytes.insert(bytes.end(), added.begin(), added.end());
}

Seal seal_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return Seal::broken;
  const auto size = std::filesystem::file_size(file, error);
  if (error) return Seal::broken;
  if (size < kLineLength) return Seal::none;
  std::string content(size, '\0');
  std::ifstream in(file, std::ios::binary);
  if (!in.read(content.data(), static_cast<std::streamsize>(size))) return Seal::broken;
  const std::string_view whole = content;
  const std::size_t end = whole.size() - kLineLength;
  if (!whole.substr(end).starts_with(kLineStart) || !whole.ends_with(kLineEnd)) return Seal::none;
  return whole.substr(end) == checksum_line(whole.substr(0, end)) ? Seal::whole : Seal::broken;
}

}  // namespace shardscape::results
