#include "results_schema/disk/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <vector>

#include "engine/base/check.h"

namespace shardscape::results {

namespace {

using Digest = std::array<unsigned char, 32>;

std::string to_hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15U];
  }
  return hex;
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  Digest digest{};
  unsigned size = 0;
  const int done = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  SHARDSCAPE_CHECK(done == 1 && size == digest.size(), done, size);
  return to_hex(digest);
}

std::optional<std::string> sha256_of_file(const std::filesystem::path& file, std::uint64_t bytes) {
  constexpr std::uint64_t kPiece = 1U << 20U;
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  SHARDSCAPE_CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1, bytes);
  std::vector<char> piece(std::min(bytes, kPiece));
  std::ifstream in(file, std::ios::binary);
  while (bytes > 0) {
    const std::uint64_t size = std::min(bytes, kPiece);
    if (!in.read(piece.data(), static_cast<std::streamsize>(size))) return std::nullopt;
    SHARDSCAPE_CHECK(EVP_DigestUpdate(context.get(), piece.data(), size) == 1, size);
    bytes -= size;
  }
  Digest digest{};
  SHARDSCAPE_CHECK(EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1, bytes);
  return to_hex(digest);
}

}  // namespace shardscape::results
