#include "sweep/validate/table_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"
#include "sweep/validate/data_tables.h"
#include "sweep/validate/measured_table.h"

namespace shardscape::validate {

std::span<const TableTemplate> table_templates() {
  static const std::vector<TableTemplate> kTemplates = [] {
    std::vector<TableTemplate> templates;
    // A name, a header and a row each, with an empty line behind them.
    for (std::string_view rest = data::table_templates(); !rest.empty();) {
      const std::size_t empty_line = rest.find("\n\n");
      const std::string_view one = rest.substr(0, empty_line == rest.npos ? rest.size() : empty_line + 1);
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      const std::size_t end = one.find('\n');
      const std::string_view name = one.substr(0, end);
      const auto kind = parse_enum<TableKind>(name);
      const bool of_plans = name == "training" || name == "serving";
      SHARDSCAPE_CHECK(end != one.npos && (kind || of_plans), "a template of no kind of table", one.size());
      templates.push_back({name, kind.value_or(TableKind::plans), one.substr(end + 1)});
    }
    return templates;
  }();
  return kTemplates;
}

std::string column_meanings(const TableTemplate& of) {
  std::string text;
  const Table table = parse_csv(of.csv, {});
  for (const std::string& name : table.columns) {
    const auto column = std::ranges::find(columns_of(of.kind), name, &Column::name);
    const bool needed = column->use == ColumnUse::needed;
    text += fmt::format("  {:<27}{} {}\n", name, needed ? '*' : ' ', column->meaning);
  }
  return text;
}

}  // namespace shardscape::validate
