// The checksum at the end of every file of a parts folder. HDF5 ignores what follows its last byte, so that
// any tool reads such a file, and one rename still commits rows and checksum together. Private to this
// folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace shardscape::results {

/// The message about a file whose bytes differ.
inline constexpr const char* kNotAsSealed = "is not what its checksum says";

/// Appends a line with the SHA-256 of all bytes so far.
void append_checksum(std::vector<std::byte>& bytes);

enum class Seal {
  whole,   ///< the file is still what append_checksum() left
  broken,  ///< it differs, cannot be read in full, or is no regular file
  none     ///< it has no such line at its end: cut off, or written before there were checksums
};

/// Checks a file without HDF5, which may loop forever over a damaged file.
Seal seal_of(const std::filesystem::path& file);
inline bool is_as_sealed(const std::filesystem::path& file) { return seal_of(file) == Seal::whole; }

}  // namespace shardscape::results
