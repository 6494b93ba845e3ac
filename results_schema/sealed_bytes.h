// The checksum at the end of every file of a parts folder. HDF5 ignores what follows its last byte, so that
// any tool reads such a file, and one rename still commits rows and checksum together. Private to this
// folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace shardscape::results {

/// What is said of a file that is not.
inline constexpr const char* kNotAsSealed = "is not what its checksum says";

/// Appends a line with the SHA-256 of what is there.
void append_checksum(std::vector<std::byte>& bytes);

enum class Seal {
  whole,   ///< the file still is what append_checksum() left
  broken,  ///< it is not, or can't be read in full, or is no regular file
  none     ///< it does not end in such a line: cut, or written before there were checksums
};

/// Knows nothing of HDF5, which may loop over damaged files.
Seal seal_of(const std::filesystem::path& file);
inline bool is_as_sealed(const std::filesystem::path& file) { return seal_of(file) == Seal::whole; }

}  // namespace shardscape::results
