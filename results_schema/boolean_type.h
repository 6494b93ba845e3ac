// The named type of booleans in a file. Private to this folder.
#pragma once

#include <cstdint>
#include <filesystem>

#include "results_schema/hdf5_io.h"

namespace shardscape::results {

inline constexpr const char* kBooleanType = "/boolean";

/// The type that h5py reads as boolean: an enumeration of one byte, FALSE and TRUE.
Hid boolean_type();

/// Adds the type to the file under its name; false where HDF5 fails.
bool name_boolean_type(hid_t file);

/// Whether it is safe to let HDF5 decode the named type. `path` is that of the open file, `base` the byte where
/// HDF5's part of it begins. Files of earlier versions have no checksum over the type, and HDF5 1.10 decodes a
/// damaged one past the end of its buffer. True where the file has no such type, where a checksum covers it, or
/// where its bytes are those that this program has always written.
bool is_boolean_type_sound(hid_t file, const std::filesystem::path& path, std::uint64_t base);

}  // namespace shardscape::results
