#include "results_schema/reading/row_scan.h"

#include <algorithm>
#include <optional>

namespace shardscape::results {

RowScan::RowScan(const TableReader& table, std::vector<std::string> columns, std::uint64_t rows_at_once)
    : table_(table),
      columns_(std::move(columns)),
      values_(columns_.size()),
      is_read_(columns_.size(), 0),
      rows_at_once_(rows_at_once) {}

bool RowScan::next() {
  const std::uint64_t rows = table_.row_count();
  range_.begin = range_.end;
  range_.end = std::min(rows, range_.begin + rows_at_once_);
  if (range_.begin >= range_.end) return false;
  std::ranges::fill(is_read_, 0);
  return true;
}

void RowScan::read(std::size_t column) const {
  table_.read_into(columns_[column], range_, values_[column]);
  is_read_[column] = 1;
}

std::vector<double> values_of(const ResultReader& reader, const std::string& column,
                              std::span<const std::uint64_t> rows) {
  std::vector<double> found, values;
  found.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size();) {
    constexpr std::uint64_t kNear =
        // Most rows read at once: a chunk is unpacked whole, but only these rows are converted.
        1024;
    std::size_t end = i + 1;  // end of the rows near this one
    while (end < rows.size() && rows[end] - rows[i] < kNear) ++end;
    reader.read_into(column, {rows[i], rows[end - 1] + 1}, values);
    for (const std::uint64_t first = rows[i]; i < end; ++i) found.push_back(values[rows[i] - first]);
  }
  return found;
}

bool varies(const ResultReader& reader, const std::string& column) {
  std::optional<double> first;
  for (RowScan scan(reader, {column}); scan.next();) {
    for (const double value : scan.values(0)) {
      if (value != first.value_or(value)) return true;
      first = value;
    }
  }
  return false;
}

}  // namespace shardscape::results
