#include "sweep/calibrate/row_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "sweep/space/expression.h"
#include "sweep/validate/run_labels.h"
#include "sweep/yaml/number.h"

namespace shardscape::calibrate {

namespace {

constexpr double kBlank = std::numeric_limits<double>::quiet_NaN();

sweep::ExpressionName name_of_column(const validate::Table& table, std::size_t column) {
  std::set<std::string> texts;
  bool numbers = true;
  for (const validate::TableRow& row : table.rows) {
    const std::string& cell = row.cells[column];
    if (cell.empty()) continue;
    numbers = numbers && yaml::parse_number(cell).has_value();
    texts.insert(cell);
  }
  const std::string& name = table.columns[column];
  const bool rate = name.find("rate") != std::string::npos || name.find("per_s") != std::string::npos;
  if (numbers) return {name, sweep::NameKind::number, {}, rate};
  return {name, sweep::NameKind::choice, {texts.begin(), texts.end()}};
}

/// The table with a column of the releases that its rows state, unless it has a column of that name.
validate::Table with_release(const validate::Table& table) {
  validate::Table result = table;
  const auto software = table.column("software"), source = table.column("source");
  if (table.column("release") || !software) return result;
  result.columns.emplace_back("release");
  for (validate::TableRow& row : result.rows) {
    const std::string from = source ? row.cells[*source] : std::string();
    const std::optional<double> release = validate::stated_release(row.cells[*software], from);
    row.cells.push_back(release ? fmt::format("{}", *release) : "");
  }
  return result;
}

double value_of(const sweep::ExpressionName& name, const std::string& cell) {
  if (cell.empty()) return kBlank;
  if (name.kind == sweep::NameKind::number) return *yaml::parse_number(cell);
  return static_cast<double>(std::ranges::lower_bound(name.choices, cell) - name.choices.begin());
}

}  // namespace

tl::expected<validate::Table, std::string> rows_where(const validate::Table& rows,
                                                      std::string_view expression) {
  const validate::Table table = with_release(rows);
  std::vector<sweep::ExpressionName> names;
  for (std::size_t c = 0; c < table.columns.size(); ++c) names.push_back(name_of_column(table, c));
  const auto parsed = sweep::Expression::parse(expression, names);
  if (!parsed) {
    return tl::unexpected(
        fmt::format("'{}', character {}: {}", expression, parsed.error().offset + 1, parsed.error().message));
  }
  validate::Table result = rows;
  result.rows.clear();
  std::vector<double> values(names.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    for (const std::size_t c : parsed->references()) values[c] = value_of(names[c], table.rows[i].cells[c]);
    if (parsed->holds(values)) result.rows.push_back(rows.rows[i]);
  }
  if (result.rows.empty()) return tl::unexpected(fmt::format("'{}' holds for no row", expression));
  return result;
}

}  // namespace shardscape::calibrate
