// Reads text files that somebody else wrote; the program has no other way to do so. Only regular files of a sensible
// size are read.
//
// Pipes and devices are refused before they are opened: they may block, never end or change with each read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <tl/expected.hpp>

namespace shardscape::input {

// The largest files that are accepted, in bytes by kind; each is many times what a person or a program writes.
inline constexpr std::uint64_t kMostStudyBytes = 4'000'000;    ///< studies, presets, configurations of models
inline constexpr std::uint64_t kMostTableBytes = 256'000'000;  ///< tables of measurements, record by record
inline constexpr std::uint64_t kMostCaseBytes = 64'000'000;    ///< network cases, and the groups of traces

/// Says why `path` can't be read; empty where it leads to a regular file that this process may open.
std::string unreadable(const std::filesystem::path& path);

/// The whole file, or why there is none: "cannot read: is a directory", "cannot read: is a named pipe, not a
/// regular file", "is 5000000 bytes long, more than the 4000000 that ...". `kind` names what it should be.
tl::expected<std::string, std::string> read_file(const std::filesystem::path& path, std::uint64_t most_bytes,
                                                 const std::string& kind);

}  // namespace shardscape::input
