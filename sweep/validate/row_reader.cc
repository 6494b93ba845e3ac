#include "sweep/validate/row_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/spec/ranges.h"
#include "sweep/yaml/number.h"

namespace shardscape::validate {

ColumnIndex::ColumnIndex(const Table& table) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) positions_.emplace(table.columns[i], i);
}

std::optional<std::size_t> ColumnIndex::find(std::string_view name) const {
  const auto found = positions_.find(name);
  return found == positions_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> RowReader::text(std::string_view column) const {
  const std::optional<std::size_t> position = index_.find(column);
  if (!position || row_.cells[*position].empty()) return std::nullopt;
  return row_.cells[*position];
}

std::optional<std::int64_t> RowReader::integer(std::string_view column, std::int64_t low, std::int64_t high) {
  const std::optional<std::string> cell = text(column);
  if (!cell) return std::nullopt;
  const auto value = yaml::parse_integer(*cell, low, high);
  if (value) return *value;
  bad(column, "'" + *cell + "': " + value.error());
  return std::nullopt;
}

std::optional<double> RowReader::positive(std::string_view column) {
  const std::optional<std::string> cell = text(column);
  if (!cell) return std::nullopt;
  const std::optional<double> value = yaml::parse_finite(*cell);
  if (value && ranges::kMeasured.holds(*value)) return value;
  bad(column, "'" + *cell + "': must be a number above 0, " + ranges::kMeasured.text() +
                  ", or blank where it is not known");
  return std::nullopt;
}

std::optional<std::int64_t> RowReader::rounded(std::string_view column) {
  const std::optional<double> value = positive(column);
  if (!value) return std::nullopt;
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  if (*value <= kMost) return std::max<std::int64_t>(1, std::llround(*value));
  bad(column, "'" + text(column).value_or("") + "': must be at most 2147483647");
  return std::nullopt;
}

std::optional<std::size_t> RowReader::choice(std::string_view column,
                                             std::span<const std::string_view> names) {
  const std::optional<std::string> cell = text(column);
  if (!cell) return std::nullopt;
  const auto name = std::ranges::find(names, *cell);
  if (name != names.end()) return static_cast<std::size_t>(name - names.begin());
  bad(column, "unknown '" + *cell + "'" + did_you_mean(*cell, names) + "; one of " + join_names(names));
  return std::nullopt;
}

std::optional<bool> RowReader::flag(std::string_view column) {
  const std::optional<std::string> cell = text(column);
  if (!cell) return std::nullopt;
  if (*cell == "1" || *cell == "true") return true;
  if (*cell == "0" || *cell == "false") return false;
  bad(column, "'" + *cell + "': must be 0 or 1, or blank where it is not known");
  return std::nullopt;
}

void RowReader::bad(std::string_view column, std::string message) {
  failed_ = true;
  problems_.push_back({table_.file, row_.line, std::string(column), std::move(message)});
}

void RowReader::need(std::string_view column) {
  if (!text(column) && index_.find(column)) bad(column, "is blank; every row needs it");
  if (!index_.find(column)) failed_ = true;  // a missing column is a problem of the header, reported once
}

}  // namespace shardscape::validate
