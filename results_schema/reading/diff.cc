// Compares two result files of one study row by row, range by range: ranges that are stored in equal bytes are skipped.
#include "results_schema/reading/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "results_schema/rows/block.h"

namespace shardscape::results {

namespace {

std::string attribute(const ResultReader& reader, const char* name) {
  const auto found = reader.attributes().find(name);
  return found == reader.attributes().end() ? "" : found->second;
}

/// Describes the first difference, such as "line 12: 'gpus: 64' and 'gpus: 128'".
std::string first_different_line(const std::string& a, const std::string& b) {
  std::istringstream in_a(a), in_b(b);
  for (int line = 1;; ++line) {
    std::string text_a, text_b;
    const bool more_a = static_cast<bool>(std::getline(in_a, text_a));
    const bool more_b = static_cast<bool>(std::getline(in_b, text_b));
    if (!more_a && !more_b) return "";
    if (text_a != text_b)
      return fmt::format("line {} of the resolved study: '{}' and '{}'", line, text_a, text_b);
  }
}

/// Allowed beside a tolerance: what rounding leaves where two sums cancel, a picosecond or as little of any other unit.
constexpr double kDust = 1e-12;

/// Relative difference of two values, or 0 within `tolerance`; codes and integers have no tolerance.
double distance(const ColumnInfo& column, double a, double b, double tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double infinite = std::numeric_limits<double>::infinity();
  if (std::isnan(a) || std::isnan(b)) return infinite;
  const bool number = column.type == ColumnType::f4 || column.type == ColumnType::f8;
  const double relative = std::abs(a - b) / std::max(std::abs(a), std::abs(b));
  const bool dust = tolerance > 0 && std::abs(a - b) <= kDust;
  return number && (dust || relative <= tolerance) ? 0 : relative;
}

/// How rows of one table are read from both files.
struct Table {
  std::string name;
  const std::vector<ColumnInfo>& columns;
  std::uint64_t rows;
  std::function<bool(const std::string& column, RowRange rows)> stored_alike;
  std::function<void(const std::string& column, RowRange rows, std::vector<double>& a,
                     std::vector<double>& b)>
      read;
  std::function<std::uint64_t(std::uint64_t row)> id;
};

void compare(const Table& table, double tolerance, std::vector<ColumnDifference>& found) {
  std::vector<double> a, b;
  for (const ColumnInfo& column : table.columns) {
    ColumnDifference difference;
    difference.table = table.name;
    difference.column = column.name;
    for (std::uint64_t begin = 0; begin < table.rows; begin += kRowsAtOnce) {
      const RowRange range{begin, begin + kRowsAtOnce};
      if (table.stored_alike(column.name, range)) continue;
      table.read(column.name, range, a, b);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double size = distance(column, a[i], b[i], tolerance);
        if (size == 0) continue;
        ++difference.rows;
        if (size <= difference.largest) continue;
        difference.largest = size;
        difference.point_id = table.id(begin + i);
        difference.a = a[i];
        difference.b = b[i];
      }
    }
    if (difference.rows > 0) found.push_back(std::move(difference));
  }
}

}  // namespace

std::optional<std::string> why_not_comparable(const ResultReader& a, const ResultReader& b) {
  if (a.stored_rows() != b.stored_rows()) {
    return fmt::format("store different rows: {} and {} (store.rows of their studies)",
                       to_string(a.stored_rows()), to_string(b.stored_rows()));
  }
  if (attribute(a, "study_sha256") != attribute(b, "study_sha256")) {
    const std::string line = first_different_line(a.resolved_yaml(), b.resolved_yaml());
    return "hold different studies: " + (line.empty() ? "their sources differ" : line);
  }
  if (a.columns() != b.columns() || a.sample_columns() != b.sample_columns())
    return "have different columns: they come from different versions of the program";
  const std::uint64_t rows = std::max(a.row_count(), b.row_count());
  std::vector<std::uint64_t> ids_a, ids_b;
  for (std::uint64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const RowRange range{begin, begin + kRowsAtOnce};
    if (a.row_count() == b.row_count() && a.stored_alike(b, "point_id", range)) continue;
    a.point_ids_into(range, ids_a);
    b.point_ids_into(range, ids_b);
    const auto [at_a, at_b] = std::ranges::mismatch(ids_a, ids_b);
    if (at_a == ids_a.end() && at_b == ids_b.end()) continue;
    const std::uint64_t point = at_a == ids_a.end()   ? *at_b
                                : at_b == ids_b.end() ? *at_a
                                                      : std::min(*at_a, *at_b);
    return fmt::format("hold different points ({} and {}): point {} is in one of them only", a.row_count(),
                       b.row_count(), point);
  }
  if (a.sample_count() != b.sample_count()) {
    return fmt::format("hold different fault samples: {} and {} rows", a.sample_count(), b.sample_count());
  }
  return std::nullopt;
}

std::vector<ColumnDifference> differing_columns(const ResultReader& a, const ResultReader& b,
                                                double tolerance) {
  std::vector<ColumnDifference> found;
  const Table points{
      "points",
      a.columns(),
      a.row_count(),
      [&](const std::string& name, RowRange range) { return a.stored_alike(b, name, range); },
      [&](const std::string& name, RowRange range, std::vector<double>& of_a, std::vector<double>& of_b) {
        a.read_into(name, range, of_a);
        b.read_into(name, range, of_b);
      },
      [&](std::uint64_t row) {
        return a.point_ids({row, row + 1}).front();
      }};
  const Table samples{
      "fault_samples",
      a.sample_columns(),
      a.sample_count(),
      [&](const std::string& name, RowRange range) { return a.samples_stored_alike(b, name, range); },
      [&](const std::string& name, RowRange range, std::vector<double>& of_a, std::vector<double>& of_b) {
        a.read_samples_into(name, range, of_a);
        b.read_samples_into(name, range, of_b);
      },
      [&](std::uint64_t row) {
        return a.sample_point_ids({row, row + 1}).front();
      }};
  compare(points, tolerance, found);
  compare(samples, tolerance, found);
  return found;
}

}  // namespace shardscape::results
