// The one way to read a text that somebody else wrote: regular files of a size that makes sense.
//
// Pipes and devices are refused before they are opened: they may block, never end or change with each read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <tl/expected.hpp>

namespace shardscape::input {

// The most that a file of a kind may hold; each is many times what a person or a program writes.
inline constexpr std::uint64_t kMostStudyBytes = 4'000'000;    ///< studies, presets, configs of models
inline constexpr std::uint64_t kMostTableBytes = 256'000'000;  ///< tables of measurements, record by record
inline constexpr std::uint64_t kMostCaseBytes = 64'000'000;    ///< network cases and groups of traces

/// Nothing where `path` leads to a regular file that this process may open; else why it can't be read.
std::string unreadable(const std::filesystem::path& path);

/// The whole file, or why there is none: "cannot read: is a directory", "cannot read: is a named pipe, not a
/// regular file", "is 5000000 bytes long, more than the 4000000 that ...". `kind` names what it should be.
tl::expected<std::string, std::string> read_file(const std::filesystem::path& path, std::uint64_t most_bytes,
                                                 const std::string& kind);

}  // namespace shardscape::input
