// The checksum at the end of every file of a parts folder. HDF5 ignores what follows its last byte, so that
// any tool reads such a file, and one rename still commits rows and checksum together. Private to this
// folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace shardscape::results {

/// Appends a line with the SHA-256 of what is there.
void append_checksum(std::vector<std::byte>& bytes);

/// Whether a file still is what append_checksum() left: false too where it can't be read in full or is no
/// regular file. Knows nothing of HDF5, which may loop over damaged files.
bool is_as_sealed(const std::filesystem::path& file);

}  // namespace shardscape::results
