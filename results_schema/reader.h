// Reading results: a finished file, or the sealed segments of a sweep that is running or was interrupted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "results_schema/columns.h"
#include "results_schema/manifest.h"
#include "results_schema/row_range.h"
#include "results_schema/store_error.h"
#include "results_schema/summary.h"

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

  [[nodiscard]] const std::filesystem::path& path() const;  ///< that of the file or of the folder of parts
  [[nodiscard]] bool complete() const;                      ///< false for parts
  [[nodiscard]] std::uint64_t row_count() const;
  /// Points that the rows were chosen from (stored_rows()): so many rows where all are stored.
  [[nodiscard]] std::uint64_t point_count() const;
  [[nodiscard]] std::uint64_t total_points() const;  ///< point_count() when complete
  [[nodiscard]] const StoredRows& stored_rows() const;
  [[nodiscard]] const BlockLayout& layout() const;  ///< which points of the study the rows are
  [[nodiscard]] const ShardRange& shards() const;
  /// True where the rows are there that stand for the whole study: all of its points, or all of a sample
  /// spread over it. Not so a prefix, a shard, chosen rows, or what a running sweep has got so far.
  [[nodiscard]] bool stands_for_study() const;
  [[nodiscard]] const std::vector<ColumnInfo>& columns() const;
  /// Nothing where there is no such column.
  [[nodiscard]] const ColumnInfo* find(std::string_view name) const;
  /// What a message on a missing column goes on with; empty where the study has asked for all columns.
  [[nodiscard]] const char* why_missing() const;

  /// Values of a column; codes and integers as doubles, NaN where not computed. StoreError where there is no
  /// such column (the message lists near names).
  [[nodiscard]] std::vector<double> read(std::string_view column, RowRange rows = {}) const;
  /// The same in place of what `values` holds; its memory is used again.
  void read_into(std::string_view column, RowRange rows, std::vector<double>& values) const;
  /// point_id without loss.
  [[nodiscard]] std::vector<std::uint64_t> point_ids(RowRange rows = {}) const;
  void point_ids_into(RowRange rows, std::vector<std::uint64_t>& ids) const;
  /// True where both files hold the rows of the column in the same bytes: then none of its values differs. False
  /// says nothing. For whoever compares files: most of two that are almost the same need not be unpacked.
  [[nodiscard]] bool stored_alike(const ResultReader& other, std::string_view column, RowRange rows) const;
  [[nodiscard]] bool samples_stored_alike(const ResultReader& other, std::string_view column,
                                          RowRange rows) const;

  /// The columns of /fault_samples; empty where the study has no faults.
  [[nodiscard]] const std::vector<ColumnInfo>& sample_columns() const;
  [[nodiscard]] std::uint64_t sample_count() const;
  /// Values of a column of /fault_samples, all or a range of rows; StoreError where there is no such column.
  [[nodiscard]] std::vector<double> read_samples(std::string_view column, RowRange rows = {}) const;
  void read_samples_into(std::string_view column, RowRange rows, std::vector<double>& values) const;
  /// Their point_id without loss; ascending.
  [[nodiscard]] std::vector<std::uint64_t> sample_point_ids(RowRange rows = {}) const;

  /// Of a file of visited points: what became of the others.
  [[nodiscard]] const std::optional<SearchInfo>& search() const;

  /// Root attributes as text.
  [[nodiscard]] const std::map<std::string, std::string>& attributes() const;
  [[nodiscard]] const std::vector<std::string>& objectives() const;
  [[nodiscard]] std::string resolved_yaml() const;
  [[nodiscard]] std::vector<SourceText> sources() const;
  [[nodiscard]] std::vector<LinkRecord> links() const;
  [[nodiscard]] std::vector<std::string> link_dimensions() const;
  /// Of all points: stored in a finished file, computed from the rows of parts, or from their summaries where these do
  /// not have all rows.
  [[nodiscard]] Summary summary() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardscape::results
