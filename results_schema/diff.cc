#include "results_schema/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "results_schema/block.h"

namespace shardscape::results {

namespace {

std::string attribute(const ResultReader& reader, const char* name) {
  const auto found = reader.attributes().find(name);
  return found == reader.attributes().end() ? "" : found->second;
}

/// "line 12: 'gpus: 64' and 'gpus: 128'".
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

/// Codes and integers have no tolerance.
double distance(const ColumnInfo& column, double a, double b, double tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double infinite = std::numeric_limits<double>::infinity();
  if (std::isnan(a) || std::isnan(b)) return infinite;
  const bool number = column.type == ColumnType::f4 || column.type == ColumnType::f8;
  const double relative = std::abs(a - b) / std::max(std::abs(a), std::abs(b));
  return number && relative <= tolerance ? 0 : relative;
}

template <class Read, class Ids>
void compare(const std::string& table, const std::vector<ColumnInfo>& columns, std::uint64_t rows,
             double tolerance, const Read& read, const Ids& ids, std::vector<ColumnDifference>& found) {
  for (const ColumnInfo& column : columns) {
    ColumnDifference difference;
    difference.table = table;
    difference.column = column.name;
    for (std::uint64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
      const RowRange range{begin, begin + kRowsAtOnce};
      const auto [a, b] = read(column.name, range);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double size = distance(column, a[i], b[i], tolerance);
        if (size == 0) continue;
        ++difference.rows;
        if (size <= difference.largest) continue;
        difference.largest = size;
        difference.point_id = ids({begin + i, begin + i + 1}).front();
        difference.a = a[i];
        difference.b = b[i];
      }
    }
    if (difference.rows > 0) found.push_back(std::move(difference));
  }
}

}  // namespace

std::optional<std::string> why_not_comparable(const ResultReader& a, const ResultReader& b) {
  if (attribute(a, "study_sha256") != attribute(b, "study_sha256")) {
    const std::string line = first_different_line(a.resolved_yaml(), b.resolved_yaml());
    return "hold different studies: " + (line.empty() ? "their sources differ" : line);
  }
  if (a.columns() != b.columns() || a.sample_columns() != b.sample_columns())
    return "have different columns: they come from different versions of the program";
  const std::uint64_t rows = std::max(a.row_count(), b.row_count());
  for (std::uint64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const RowRange range{begin, begin + kRowsAtOnce};
    const auto ids_a = a.point_ids(range), ids_b = b.point_ids(range);
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
  compare(
      "points", a.columns(), a.row_count(), tolerance,
      [&](const std::string& name, RowRange range) {
        return std::pair(a.read(name, range), b.read(name, range));
      },
      [&](RowRange range) { return a.point_ids(range); }, found);
  compare(
      "fault_samples", a.sample_columns(), a.sample_count(), tolerance,
      [&](const std::string& name, RowRange range) {
        return std::pair(a.read_samples(name, range), b.read_samples(name, range));
      },
      [&](RowRange range) { return a.sample_point_ids(range); }, found);
  return found;
}

}  // namespace shardscape::results
