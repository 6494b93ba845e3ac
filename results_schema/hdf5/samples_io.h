// /fault_samples in HDF5: one row per fault of a sample of a point, as many as the points have. Private to
// this folder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "results_schema/hdf5/chunk_filler.h"
#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/rows/records.h"

namespace shardscape::results {

inline constexpr const char* kSamplesGroup = "/fault_samples";

/// Creates the group with `rows` rows in each column, which are not written yet.
std::vector<Dataset> create_samples(const H5File& file, std::span<const ColumnInfo> columns,
                                    std::uint64_t rows);
/// Fills the columns from the first row on, chunk by chunk, without HDF5's own filters.
class SampleWriter {
 public:
  /// `columns`: from create_samples(); all of their rows must be written.
  explicit SampleWriter(std::vector<Dataset> columns);

  void append(std::span<const FaultSampleRecord> rows);
  /// Appends rows of the group in another file; by default all.
  void append_from(const H5File& from);
  void append_from(const H5File& from, std::span<const RowRange> rows);
  /// Writes the last chunk. Call once, after the last row.
  void finish();

 private:
  std::vector<Dataset> columns_;
  std::vector<std::byte> plain_;
  ChunkFiller chunks_;
};

/// Number of rows in the group; StoreError where its columns differ in length.
std::uint64_t sample_rows(const H5File& file, std::span<const ColumnInfo> columns);
std::vector<ColumnInfo> read_sample_columns(const H5File& file);

}  // namespace shardscape::results
