// Files that are either there in full or not at all. Private to this folder and report/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "results_schema/store_error.h"

namespace shardscape::results {

/// Ending of files that are being written.
inline constexpr const char* kTemporaryEnding = ".tmp";

/// Writes `path` under a temporary name beside it, syncs, renames, syncs the directory. On failure nothing
/// remains.
void write_durably(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// Syncs `temporary`, renames it over `path` (same file system) and syncs both directories.
void publish(const std::filesystem::path& temporary, const std::filesystem::path& path);

void sync_directory(const std::filesystem::path& directory);

/// The folder that holds `path`; "." for a bare name.
std::filesystem::path directory_of(const std::filesystem::path& path);

/// Makes a folder disappear in one step (rename), then deletes it. Nothing happens where there is none.
void remove_folder(const std::filesystem::path& folder);
/// Where remove_folder() keeps what it is deleting; a leftover there is dead.
std::filesystem::path dying_folder(const std::filesystem::path& folder);

}  // namespace shardscape::results
