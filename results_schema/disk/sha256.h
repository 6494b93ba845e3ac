// SHA-256 of texts (OpenSSL's).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace shardscape::results {

/// The SHA-256 of a text as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view text);

/// The SHA-256 of the first `bytes` bytes of a file, read piece by piece; nothing where it cannot be read or is
/// shorter.
std::optional<std::string> sha256_of_file(const std::filesystem::path& file, std::uint64_t bytes);

}  // namespace shardscape::results
