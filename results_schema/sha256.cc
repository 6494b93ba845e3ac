#include "results_schema/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "engine/base/check.h"

namespace shardscape::results {

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  const int done = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  SHARDSCAPE_CHECK(done == 1 && size == digest.size(), done, size);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15U];
  }
  return hex;
}

}  // namespace shardscape::results
