// The manifest in HDF5: root attributes, /study and /links. Shared by manifest.h5 and the finished file;
// private to this folder.
#pragma once

#include <cstdint>

#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/hdf5/manifest.h"

namespace shardscape::results {

inline constexpr const char* kResultsSchema = "shardscape-results";
inline constexpr const char* kManifestSchema = "shardscape-manifest";
inline constexpr const char* kSegmentSchema = "shardscape-segment";
/// Version 4 has checksums of all that is stored (checksums.h); version 3 did without texts of variable length, which
/// HDF5 reads forever where they are damaged.
inline constexpr std::uint64_t kSchemaVersion = 4;

/// Writes root attributes, /study, /links and an empty /points.
void write_manifest(const H5File& file, const char* schema, const Manifest& manifest, const RunInfo& run,
                    bool complete);

/// StoreError where the manifest is incomplete, or lacks columns that every reader needs.
Manifest read_manifest(const H5File& file);

/// StoreError unless the root names `schema` and this version of it.
void check_schema(const H5File& file, const char* schema);

}  // namespace shardscape::results
