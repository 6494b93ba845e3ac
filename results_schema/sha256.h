// SHA-256 of texts (OpenSSL's).
#pragma once

#include <string>
#include <string_view>

namespace shardscape::results {

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view text);

}  // namespace shardscape::results
