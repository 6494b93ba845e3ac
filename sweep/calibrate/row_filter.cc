#include "sweep/calibrate/row_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "sweep/space/expression.h"
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
  if (numbers) return {table.columns[column]};
  return {table.columns[column], sweep::NameKind::choice, {texts.begin(), texts.end()}};
}

double value_of(const sweep::ExpressionName& name, const std::string& cell) {
  if (cell.empty()) return kBlank;
  if (name.kind == sweep::NameKind::number) return *yaml::parse_number(cell);
  return static_cast<double>(std::ranges::lower_bound(name.choices, cell) - name.choices.begin());
}

}  // namespace

tl::expected<validate::Table, std::string> rows_where(const validate::Table& table,
                                                      std::string_view expression) {
  std::vector<sweep::ExpressionName> names;
  for (std::size_t c = 0; c < table.columns.size(); ++c) names.push_back(name_of_column(table, c));
  const auto parsed = sweep::Expression::parse(expression, names);
  if (!parsed) {
    return tl::unexpected(
        fmt::format("'{}', character {}: {}", expression, parsed.error().offset + 1, parsed.error().message));
  }
  validate::Table result = table;
  std::vector<double> values(names.size());
  std::erase_if(result.rows, [&](const validate::TableRow& row) {
    for (const std::size_t c : parsed->references()) values[c] = value_of(names[c], row.cells[c]);
    return !parsed->holds(values);
  });
  if (result.rows.empty()) return tl::unexpected(fmt::format("'{}' holds for no row", expression));
  return result;
}

}  // namespace shardscape::calibrate
