// Reads results: from a finished file, or from the sealed segments of a sweep that is running or was interrupted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "results_schema/disk/store_error.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/rows/columns.h"
#include "results_schema/rows/row_range.h"
#include "results_schema/rows/summary.h"

namespace shardscape::results {

/// A snapshot of results: rows sealed later do not appear. Rows ascend by point_id; an interrupted sweep may
/// have gaps. Every function throws StoreError where the file is foreign, broken or gone. Not thread-safe;
/// move-only.
class ResultReader {
 public:
  /// `path`: OUT.h5, or OUT.h5.parts, or OUT.h5 while only OUT.h5.parts exists.
  explicit ResultReader(const std::filesystem::path& path);
  ~ResultReader();
  ResultReader(ResultReader&&) noexcept;
  ResultReader& operator=(ResultReader&&) noexcept;

  [[nodiscard]] const std::filesystem::path& path() const;  ///< path of the file or of the folder of parts
  /// Whether it is a finished file rather than parts.
  [[nodiscard]] bool complete() const;
  [[nodiscard]] std::uint64_t row_count() const;
  /// Number of points that the rows were chosen from (stored_rows()); the number of rows where all are stored.
  [[nodiscard]] std::uint64_t point_count() const;
  [[nodiscard]] std::uint64_t total_points() const;  ///< point_count() when complete
  [[nodiscard]] const StoredRows& stored_rows() const;
  [[nodiscard]] const BlockLayout& layout() const;  ///< the points of the study that the rows are
  [[nodiscard]] const ShardRange& shards() const;
  /// Whether the rows represent the whole study: all of its points, or all of a sample spread over it. False for a
  /// prefix, a shard, chosen rows, and the rows that a running sweep has so far.
  [[nodiscard]] bool stands_for_study() const;
  [[nodiscard]] const std::vector<ColumnInfo>& columns() const;
  /// The column of that name; nothing where there is none.
  [[nodiscard]] const ColumnInfo* find(std::string_view name) const;
  /// The end of a message about a missing column; empty where the study has asked for all columns.
  [[nodiscard]] const char* why_missing() const;

  /// Values of a column; codes and integers as doubles, NaN where not computed. StoreError where there is no such
  /// column (the message lists similar names).
  [[nodiscard]] std::vector<double> read(std::string_view column, RowRange rows = {}) const;
  /// As read(), but into `values`, whose memory is used again.
  void read_into(std::string_view column, RowRange rows, std::vector<double>& values) const;
  /// The column point_id without loss of precision.
  [[nodiscard]] std::vector<std::uint64_t> point_ids(RowRange rows = {}) const;
  void point_ids_into(RowRange rows, std::vector<std::uint64_t>& ids) const;
  /// True where both files hold the rows of the column in equal bytes, so that all values are equal; false means
  /// nothing. When two nearly equal files are compared, most of them need not be unpacked.
  [[nodiscard]] bool stored_alike(const ResultReader& other, std::string_view column, RowRange rows) const;
  [[nodiscard]] bool samples_stored_alike(const ResultReader& other, std::string_view column,
                                          RowRange rows) const;

  /// The columns of /fault_samples; empty where the study has no faults.
  [[nodiscard]] const std::vector<ColumnInfo>& sample_columns() const;
  [[nodiscard]] std::uint64_t sample_count() const;
  /// Values of a column of /fault_samples, all or a range of rows; StoreError where there is no such column.
  [[nodiscard]] std::vector<double> read_samples(std::string_view column, RowRange rows = {}) const;
  void read_samples_into(std::string_view column, RowRange rows, std::vector<double>& values) const;
  /// The column point_id of /fault_samples without loss of precision; ascending.
  [[nodiscard]] std::vector<std::uint64_t> sample_point_ids(RowRange rows = {}) const;

  /// For a file of a search: what happened to the points that were not visited.
  [[nodiscard]] const std::optional<SearchInfo>& search() const;

  /// Attributes of the root as text.
  [[nodiscard]] const std::map<std::string, std::string>& attributes() const;
  [[nodiscard]] const std::vector<std::string>& objectives() const;
  [[nodiscard]] std::string resolved_yaml() const;
  [[nodiscard]] std::vector<SourceText> sources() const;
  [[nodiscard]] std::vector<LinkRecord> links() const;
  [[nodiscard]] std::vector<std::string> link_dimensions() const;
  /// The summary of all points: stored in a finished file, computed from the rows of parts, or joined from the parts'
  /// summaries where these do not have all rows.
  [[nodiscard]] Summary summary() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardscape::results
