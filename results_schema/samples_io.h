// /fault_samples in HDF5: one row per fault of a sample of a point, as many as the points have. Private to
// this folder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "results_schema/hdf5_io.h"
#include "results_schema/records.h"

namespace shardscape::results {

inline constexpr const char* kSamplesGroup = "/fault_samples";

/// The group with `rows` rows of each column, not written yet.
std::vector<Dataset> create_samples(const H5File& file, std::span<const ColumnInfo> columns,
                                    std::uint64_t rows);
/// Rows from `first` on.
void write_samples(const std::vector<Dataset>& columns, std::uint64_t first,
                   std::span<const FaultSampleRecord> rows);
/// All rows of the group of another file, from `first` on; gives back how many.
std::uint64_t copy_samples(const H5File& from, const std::vector<Dataset>& columns, std::uint64_t first);

/// Rows of the group; StoreError where its columns differ in length.
std::uint64_t sample_rows(const H5File& file, std::span<const ColumnInfo> columns);
std::vector<ColumnInfo> read_sample_columns(const H5File& file);

}  // namespace shardscape::results
