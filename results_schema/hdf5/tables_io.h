// The tables of a file beside its points, in HDF5: /fault_samples, one row per fault of a sample of a point, as many as
// the points have; /summary; and the dimension scales, by which netCDF readers (xarray, netCDF4, h5netcdf, ncdump) know
// which columns form a table. Private to this folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results_schema/hdf5/chunk_filler.h"
#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/rows/records.h"
#include "results_schema/rows/summary.h"

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

/// The names of the columns that a summary is made from: point_id, status, reason, then the objectives.
std::vector<std::string> summary_columns(const std::vector<std::string>& objectives);

/// The direction of each objective; all objectives have one (manifest_problems).
std::vector<Better> directions_of(const std::vector<std::string>& objectives,
                                  std::span<const ColumnInfo> columns);

void write_summary(const H5File& file, const Summary& summary, const std::vector<std::string>& objectives,
                   std::span<const ColumnInfo> columns);

Summary read_summary(const H5File& file, const std::vector<std::string>& objectives);

/// Adds the dimensions `point`, `fault_sample` and `link` to the root, where netCDF looks for what its groups
/// share, those of the summary's tables beside them, and gives each column its own. Call once, when all
/// tables are there.
///
/// A dimension is a dataset without storage whose NAME says that it is no variable (NetCDF-4 file format,
/// "Dimensions without HDF5 dimension scale variables"; HDF5 Dimension Scale Specification).
void write_dimensions(const H5File& file);

/// StoreError unless each column still has its dimension. HDF5 keeps no checksum of the references from a column to its
/// dimension, and may never return from following damaged ones.
void check_dimensions(const H5File& file);

}  // namespace shardscape::results
