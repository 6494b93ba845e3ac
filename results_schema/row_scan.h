// Reading a few columns of a result file from the first row to the last, with memory for a range of rows only:
// what a command reads of a table of 10^8 rows takes as much memory as of one of 10^6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results_schema/block.h"
#include "results_schema/reader.h"

namespace shardscape::results {

/// One pass over the rows. StoreError as ResultReader::read().
class RowScan {
 public:
  /// `columns` in the order in which values() takes them. The reader must outlive the scan.
  RowScan(const ResultReader& reader, std::vector<std::string> columns,
          std::uint64_t rows_at_once = kRowsAtOnce);

  /// The next range of rows is read; false after the last.
  bool next();
  [[nodiscard]] std::uint64_t first_row() const { return range_.begin; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(range_.end - range_.begin); }
  /// Of the range: size() values, codes and integers as doubles, NaN where not computed.
  [[nodiscard]] std::span<const double> values(std::size_t column) const { return values_[column]; }

 private:
  const ResultReader& reader_;
  std::vector<std::string> columns_;
  std::vector<std::vector<double>> values_;
  std::uint64_t rows_at_once_;
  RowRange range_{0, 0};
};

/// The values of the column in some rows, which ascend: no other rows are kept in memory.
std::vector<double> values_of(const ResultReader& reader, const std::string& column,
                              std::span<const std::uint64_t> rows);

/// True where the column takes more than one value in the file; not computed is no value twice. Stops at the
/// first difference.
bool varies(const ResultReader& reader, const std::string& column);

}  // namespace shardscape::results
