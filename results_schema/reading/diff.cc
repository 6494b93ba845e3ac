// Compares two result files of one study row by row, range by range: ranges that are stored in equal bytes are skipped.
#include "results_schema/reading/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "results_schema/rows/block.h"

namespace shardscape::results {

namespace {

/// Describes the first difference, such as "line 12: 'gpus: 64' and 'gpus: 128'", or the part of the study in which it
/// is where the lines are of different keys; that of titles only where there is no other.
std::string first_different_line(const std::string& a, const std::string& b) {
  std::istringstream in_a(a), in_b(b);
  std::string titles, part;
  const auto key = [](const std::string& text) { return text.substr(0, text.find(':')); };
  for (int line = 1;; ++line) {
    std::string text_a, text_b;
    const bool more_a = static_cast<bool>(std::getline(in_a, text_a));
    const bool more_b = static_cast<bool>(std::getline(in_b, text_b));
    if (!more_a && !more_b) return titles;
    for (const std::string& text : {text_b, text_a})
      if (!text.empty() && text.front() != ' ') part = key(text);
    if (text_a == text_b) continue;
    const bool parts_differ = !text_b.empty() && text_b.front() != ' ' && key(text_a) != key(text_b);
    if (parts_differ && !text_a.empty() && text_a.front() != ' ') part += " and " + key(text_b);
    if (key(text_a) != key(text_b))
      return fmt::format("from line {} of the resolved study on, in {}", line, part);
    std::string found = fmt::format("line {} of the resolved study: '{}' and '{}'", line, text_a, text_b);
    if (!text_a.starts_with("study:") || !text_b.starts_with("study:")) return found;
    titles = std::move(found);
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

/// Compares the rows of the table `name` of both files, which have the same points.
void compare(const char* name, const TableReader& a, const TableReader& b, double tolerance,
             std::vector<ColumnDifference>& found) {
  std::vector<double> of_a, of_b;
  for (const ColumnInfo& column : a.columns()) {
    ColumnDifference difference;
    difference.table = name;
    difference.column = column.name;
    for (std::uint64_t begin = 0; begin < a.row_count(); begin += kRowsAtOnce) {
      const RowRange range{begin, begin + kRowsAtOnce};
      if (a.stored_alike(b, column.name, range)) continue;
      a.read_into(column.name, range, of_a);
      b.read_into(column.name, range, of_b);
      for (std::size_t i = 0; i < of_a.size(); ++i) {
        const double size = distance(column, of_a[i], of_b[i], tolerance);
        if (size == 0) continue;
        ++difference.rows;
        if (size <= difference.largest) continue;
        difference.largest = size;
        difference.point_id = a.point_ids({begin + i, begin + i + 1}).front();
        difference.a = of_a[i];
        difference.b = of_b[i];
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
  if (a.attribute("study_sha256") != b.attribute("study_sha256")) {
    const std::string line = first_different_line(a.resolved_yaml(), b.resolved_yaml());
    return "hold different studies: " + (line.empty() ? "their sources differ" : line);
  }
  if (a.columns() != b.columns() || a.samples().columns() != b.samples().columns())
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
  if (a.samples().row_count() != b.samples().row_count()) {
    return fmt::format("hold different fault samples: {} and {} rows", a.samples().row_count(),
                       b.samples().row_count());
  }
  return std::nullopt;
}

std::vector<ColumnDifference> differing_columns(const ResultReader& a, const ResultReader& b,
                                                double tolerance) {
  std::vector<ColumnDifference> found;
  compare("points", a, b, tolerance, found);
  compare("fault_samples", a.samples(), b.samples(), tolerance, found);
  return found;
}

}  // namespace shardscape::results
