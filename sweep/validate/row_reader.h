// Reads the cells of one row by name and type, and reports every problem with its line and column.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/suggest.h"
#include "sweep/validate/measured_table.h"

namespace shardscape::validate {

/// Positions of columns by name; the first one where a name occurs twice.
class ColumnIndex {
 public:
  explicit ColumnIndex(const Table& table);
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;

 private:
  std::map<std::string, std::size_t, std::less<>> positions_;
};

class RowReader {
 public:
  /// All references must outlive the reader. Problems are appended to `problems`.
  RowReader(const Table& table, const ColumnIndex& index, const TableRow& row,
            std::vector<TableProblem>& problems)
      : table_(table), index_(index), row_(row), problems_(problems) {}

  [[nodiscard]] bool has_column(std::string_view column) const { return index_.find(column).has_value(); }
  /// Cells that are blank, absent or (with a problem reported) unreadable give nothing.
  [[nodiscard]] std::optional<std::string> text(std::string_view column) const;
  std::optional<std::int64_t> integer(std::string_view column, std::int64_t low = 1,
                                      std::int64_t high = std::numeric_limits<std::int32_t>::max());
  std::optional<double> positive(std::string_view column);  ///< a number within ranges::kMeasured
  /// A positive number, rounded to an integer, at least 1.
  std::optional<std::int64_t> rounded(std::string_view column);
  std::optional<bool> flag(std::string_view column);  ///< 0 or 1, false or true
  /// The index of the cell among `names`.
  std::optional<std::size_t> choice(std::string_view column, std::span<const std::string_view> names);
  template <class E>
  std::optional<E> choice(std::string_view column) {
    const std::optional<std::size_t> position = choice(column, enum_names<E>());
    return position ? std::optional(static_cast<E>(*position)) : std::nullopt;
  }

  void bad(std::string_view column, std::string message);
  /// Reports a blank cell of a column that must be filled, once per column and row.
  void need(std::string_view column);

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] int line() const { return row_.line; }

 private:
  const Table& table_;
  const ColumnIndex& index_;
  const TableRow& row_;
  std::vector<TableProblem>& problems_;
  bool failed_ = false;
};

}  // namespace shardscape::validate
