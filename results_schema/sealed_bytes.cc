#include "results_schema/sealed_bytes.h"

#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "results_schema/sha256.h"

namespace shardscape::results {

namespace {

constexpr std::size_t kHashDigits = 64;

std::string checksum_line(std::string_view bytes) { return "\nsha256:" + sha256_hex(bytes) + '\n'; }

const std::size_t kLineLength = std::string_view("\nsha256:\n").size() + kHashDigits;

}  // namespace

void append_checksum(std::vector<std::byte>& bytes) {
  const std::string line = checksum_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto added = std::as_bytes(std::span(line));
  bytes.insert(bytes.end(), added.begin(), added.end());
}

bool is_as_sealed(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  const auto size = std::filesystem::file_size(file, error);
  if (error || size < kLineLength) return false;
  std::string content(size, '\0');
  std::ifstream in(file, std::ios::binary);
  if (!in.read(content.data(), static_cast<std::streamsize>(size))) return false;
  const std::string_view whole = content;
  const std::size_t end = whole.size() - kLineLength;
  return whole.substr(end) == checksum_line(whole.substr(0, end));
}

}  // namespace shardscape::results
