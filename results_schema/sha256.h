// SHA-256 of texts (OpenSSL's).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace shardscape::results {

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view text);

/// Of the first `bytes` of a file, read piece by piece; nothing where it can't be read or is shorter.
std::optional<std::string> sha256_of_file(const std::filesystem::path& file, std::uint64_t bytes);

}  // namespace shardscape::results
