// The rows of a finished file, where a sweep does not store all of them: chosen among the candidates of its parts.
// Private to this folder.
#pragma once

#include <filesystem>
#include <functional>
#include <span>

#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/rows/summary.h"

namespace shardscape::results {

/// Opens a part; StoreError where it is not what it should be.
using OpenPart = std::function<H5File(const std::filesystem::path& path)>;

/// Writes /points, and /fault_samples where the study has faults, with the rows to store of `parts`: segments or
/// finished files in the order of their points, each with all its rows that may be stored. Takes memory for the ids of
/// the rows (for `feasible` not even that) and one chunk per column. Returns the summary of all points.
Summary write_stored_rows(const Manifest& manifest, std::span<const std::filesystem::path> parts,
                          const OpenPart& open, const H5File& output);

}  // namespace shardscape::results
