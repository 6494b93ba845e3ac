// Reads results: from a finished file, or from the sealed segments of a sweep that is running or was interrupted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "results_schema/disk/files.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/rows/columns.h"
#include "results_schema/rows/records.h"
#include "results_schema/rows/summary.h"

namespace shardscape::results {

/// The rows of one table of a snapshot. Functions throw StoreError where the file is broken or gone, or where the table
/// has no such column (the message lists those there are).
class TableReader {
 public:
  [[nodiscard]] const std::vector<ColumnInfo>& columns() const;
  [[nodiscard]] std::uint64_t row_count() const;
  /// The column of that name; nothing where there is none.
  [[nodiscard]] const ColumnInfo* find(std::string_view name) const;

  /// Values of a column; codes and integers as doubles, NaN where not computed.
  [[nodiscard]] std::vector<double> read(std::string_view column, RowRange rows = {}) const;
  /// As read(), but into `values`, whose memory is used again.
  void read_into(std::string_view column, RowRange rows, std::vector<double>& values) const;
  /// The column point_id without loss of precision; ascending.
  [[nodiscard]] std::vector<std::uint64_t> point_ids(RowRange rows = {}) const;
  void point_ids_into(RowRange rows, std::vector<std::uint64_t>& ids) const;
  /// True where both tables hold the rows of the column in equal bytes, so that all values are equal; false means
  /// nothing. When two nearly equal files are compared, most of them need not be unpacked.
  [[nodiscard]] bool stored_alike(const TableReader& other, std::string_view column, RowRange rows) const;

 private:
  friend class ResultReader;
  struct Files;
  struct Table;
  const Table* table_ = nullptr;
};

/// A snapshot of results: rows sealed later do not appear. It is the table of points: rows ascend by point_id; an
/// interrupted sweep may have gaps. Every function throws StoreError where the file is foreign, broken or gone. Not
/// thread-safe; move-only.
class ResultReader : public TableReader {
 public:
  /// `path`: OUT.h5, or OUT.h5.parts, or OUT.h5 while only OUT.h5.parts exists.
  explicit ResultReader(const std::filesystem::path& path);
  ~ResultReader();
  ResultReader(ResultReader&&) noexcept;
  ResultReader& operator=(ResultReader&&) noexcept;

  [[nodiscard]] const std::filesystem::path& path() const;  ///< path of the file or of the folder of parts
  /// Whether it is a finished file rather than parts.
  [[nodiscard]] bool complete() const;
  /// Number of points that the rows were chosen from (stored_rows()); the number of rows where all are stored.
  [[nodiscard]] std::uint64_t point_count() const;
  [[nodiscard]] std::uint64_t total_points() const;  ///< point_count() when complete
  [[nodiscard]] const StoredRows& stored_rows() const;
  [[nodiscard]] const BlockLayout& layout() const;  ///< the points of the study that the rows are
  [[nodiscard]] const ShardRange& shards() const;
  /// Whether the rows represent the whole study: all of its points, or all of a sample spread over it. False for a
  /// prefix, a shard, chosen rows, and the rows that a running sweep has so far.
  [[nodiscard]] bool stands_for_study() const;
  /// The end of a message about a missing column; empty where the study has asked for all columns.
  [[nodiscard]] const char* why_missing() const;

  /// The table /fault_samples; without columns where the study has no faults.
  [[nodiscard]] const TableReader& samples() const { return samples_; }

  /// For a file of a search: what happened to the points that were not visited.
  [[nodiscard]] const std::optional<SearchInfo>& search() const;

  /// Attributes of the root as text.
  [[nodiscard]] const std::map<std::string, std::string>& attributes() const;
  /// One of them; empty where there is none of that name.
  [[nodiscard]] std::string attribute(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& objectives() const;
  [[nodiscard]] std::string resolved_yaml() const;
  [[nodiscard]] std::vector<SourceText> sources() const;
  [[nodiscard]] std::vector<LinkRecord> links() const;
  [[nodiscard]] std::vector<std::string> link_dimensions() const;
  /// The summary of all points: stored in a finished file, computed from the rows of parts, or joined from the parts'
  /// summaries where these do not have all rows.
  [[nodiscard]] Summary summary() const;

 private:
  struct Snapshot;
  std::unique_ptr<Snapshot> snapshot_;
  TableReader samples_;
};

}  // namespace shardscape::results
