// Other names follow from the table of axes and from the endings of units, so that no list of them is kept.
#include "sweep/study/column_names.h"

#include <algorithm>

#include "engine/spec/plan_axes.h"
#include "sweep/space/axis_names.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::sweep {

const std::vector<results::ColumnInfo>& fixed_columns() {
  static const std::vector<results::ColumnInfo> kColumns = [] {
    std::vector<results::ColumnInfo> columns;
    for (const Phase phase : {Phase::training, Phase::inference}) {
      const results::ColumnTable table(phase, {}, results::kAllExtras);
      columns.insert(columns.end(), table.columns().begin(), table.columns().end());
    }
    return columns;
  }();
  return kColumns;
}

std::vector<std::string> names_of_column(std::string_view column, std::string_view unit) {
  std::vector<std::string> names = {std::string(column)};
  if (const PlanAxisRow* const row = find_plan_column(column); row != nullptr && row->name != column)
    names.emplace_back(row->name);
  for (int dimension = 0; dimension <= static_cast<int>(yaml::Dimension::energy_per_bit); ++dimension) {
    const yaml::DimensionRow& row = yaml::row_of(static_cast<yaml::Dimension>(dimension));
    if (unit == row.unit && column.ends_with(row.suffix))
      names.emplace_back(column.substr(0, column.size() - row.suffix.size()));
  }
  if (column == "memory_peak_bytes") names.emplace_back("memory");
  if (column == "request_rate_per_s") names.emplace_back("request_rate");
  if (column == "energy_per_token_j") names.insert(names.end(), {"energy_per_token", "energy"});
  if (column == "cost_per_million_tokens") names.emplace_back("cost");
  return names;
}

std::string column_meant(std::string_view name, std::span<const std::string> known) {
  const auto is_known = [&](std::string_view column) {
    return std::ranges::find(known, column) != known.end();
  };
  const std::string plain = without_path(name);
  if (is_known(plain)) return plain;
  for (const results::ColumnInfo& column : fixed_columns()) {
    const std::vector<std::string> names = names_of_column(column);
    if (is_known(column.name) && std::ranges::find(names, plain) != names.end()) return column.name;
  }
  return std::string(name);
}

}  // namespace shardscape::sweep
