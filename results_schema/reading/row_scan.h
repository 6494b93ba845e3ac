// Reads a few columns of a result file from the first row to the last, with memory for a range of rows only, so that a
// table of 10^8 rows takes as much memory as one of 10^6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"
#include "results_schema/rows/block.h"

namespace shardscape::results {

/// One pass over the rows. A column is read for a range only when its values are asked for, so that a column that
/// matters for some rows costs nothing elsewhere. StoreError as TableReader::read().
class RowScan {
 public:
  /// values() takes indices in `columns`. The table must outlive the scan.
  RowScan(const TableReader& table, std::vector<std::string> columns,
          std::uint64_t rows_at_once = kRowsAtOnce);

  /// Moves on to the next range of rows; false after the last.
  bool next();
  [[nodiscard]] std::uint64_t first_row() const { return range_.begin; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(range_.end - range_.begin); }
  [[nodiscard]] std::vector<std::uint64_t> point_ids() const { return table_.point_ids(range_); }
  /// Values of a column in the range: size() of them, codes and integers as doubles, NaN where not computed.
  [[nodiscard]] std::span<const double> values(std::size_t column) const {
    if (is_read_[column] == 0) read(column);
    return values_[column];
  }

 private:
  void read(std::size_t column) const;

  const TableReader& table_;
  std::vector<std::string> columns_;
  mutable std::vector<std::vector<double>> values_;
  mutable std::vector<char> is_read_;  ///< by column, whether it has been read for the range
  std::uint64_t rows_at_once_;
  RowRange range_{0, 0};
};

/// The values of a column in some rows, which ascend; other rows are not kept in memory.
std::vector<double> values_of(const ResultReader& reader, const std::string& column,
                              std::span<const std::uint64_t> rows);

/// Whether the column takes more than one value in the file; several values that were not computed count as one. Stops
/// at the first difference.
bool varies(const ResultReader& reader, const std::string& column);

}  // namespace shardscape::results
