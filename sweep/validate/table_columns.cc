// The columns of every kind of table (table_columns.csv), recognition of a table's kind by its header, and the check of
// a header with suggestions for unknown names.
#include "sweep/validate/table_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/enum_array.h"
#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "engine/spec/plan_axes.h"
#include "sweep/input/csv_line.h"
#include "sweep/validate/data_tables.h"
#include "sweep/validate/served_columns.h"

namespace shardscape::validate {

namespace {

using enum ColumnUse;

/// A line of table_columns.csv.
struct ListedColumn {
  std::string_view list;
  Column column;
};

const std::vector<ListedColumn>& listed_columns() {
  static const std::vector<ListedColumn> kColumns = [] {
    std::vector<ListedColumn> columns;
    for (const std::string_view line : split(data::table_columns(), '\n')) {
      if (line.empty() || line.starts_with('#')) continue;
      const std::vector<std::string_view> cells = input::cells_of(line);
      SHARDSCAPE_CHECK(cells.size() == 4, "table_columns.csv: ", line);
      const bool reference = cells[1].starts_with('(') && cells[2].empty();
      const auto use = reference ? free : parse_enum<ColumnUse>(cells[2]);
      SHARDSCAPE_CHECK(use.has_value(), "table_columns.csv: ", line);
      columns.push_back({cells[0], {cells[1], *use, cells[3]}});
    }
    return columns;
  }();
  return kColumns;
}

/// Adds the columns of a list, of plans of others with none but its own that is due.
void add_list(std::string_view list, bool ours, std::vector<Column>& columns) {
  const auto add_axis = [&](const PlanAxisRow& row) {
    if (row.cell != nullptr)
      columns.push_back({row.column, ours && row.cell_due ? expected : free, row.cell});
  };
  const auto add_served = [&](std::span<const ServedColumn> served) {
    for (const ServedColumn& column : served) columns.push_back({column.measured, free, column.name});
  };
  for (const ListedColumn& listed : listed_columns()) {
    const std::string_view name = listed.column.name;
    if (listed.list != list) continue;
    if (name == "(axes)") {
      for (const PlanAxisRow& row : kPlanRows)
        if (row.key != PlanKey::microbatch) add_axis(row);
      add_axis(row_of(PlanKey::microbatch));  // among the columns of batches
    } else if (name == "(means of servers)") {
      add_served(served_columns().first(kE2eColumn + 1));
    } else if (name == "(all of servers)") {
      add_served(served_columns());
    } else if (name == "(open loop of servers)") {
      add_served(open_loop_columns());
    } else if (name.starts_with('(')) {
      const std::size_t begin = columns.size();
      add_list(name.substr(1, name.size() - 2), ours, columns);
      SHARDSCAPE_CHECK(columns.size() > begin, "table_columns.csv has no list ", name);
      for (std::size_t i = begin; !ours && i < columns.size(); ++i) columns[i].use = free;
    } else {
      columns.push_back(listed.column);
    }
  }
}

std::vector<Column> list(std::string_view name, bool ours = true) {
  std::vector<Column> columns;
  add_list(name, ours, columns);
  return columns;
}

bool names(std::span<const Column> columns, std::string_view name) {
  return std::ranges::find(columns, name, &Column::name) != columns.end();
}

/// Whether the header is of a public table, which names device or software.
bool is_public(std::span<const std::string> header) {
  const auto has = [&](std::string_view name) { return std::ranges::find(header, name) != header.end(); };
  return (has("device") || has("software")) && !(has("cluster") && has("stack"));
}

std::span<const Column> columns_for(TableKind kind, std::span<const std::string> header) {
  return kind == TableKind::plans && is_public(header) ? public_plan_columns() : columns_of(kind);
}

/// The column that may replace another; itself where none may.
std::string_view alternative(std::string_view column) {
  if (column == "device") return "cluster";
  return column == "software" ? "stack" : column;
}

/// How well a header matches a form: the better of two is the larger one.
struct Match {
  int faults = 0;    ///< less than 0, for each needed column that is missing and each unknown one
  double share = 0;  ///< of the form's needed and expected columns
  int due = 0;       ///< number of these
  friend auto operator<=>(const Match&, const Match&) = default;
};

bool knows(TableKind kind, std::span<const Column> columns, std::string_view name) {
  return names(columns, name) || (kind == TableKind::open_loop && is_prediction_of_another(name));
}

/// Nothing where too few columns are there to tell.
std::optional<Match> match(TableKind kind, std::span<const Column> columns,
                           std::span<const std::string> header) {
  Match found;
  int there = 0, needed_columns = 0, missing = 0;
  const auto has = [&](std::string_view name) { return std::ranges::find(header, name) != header.end(); };
  for (const Column& column : columns) {
    if (column.use == free) continue;
    ++found.due;
    there += has(column.name) ? 1 : 0;
    if (column.use != needed) continue;
    ++needed_columns;
    missing += has(column.name) || has(alternative(column.name)) ? 0 : 1;
  }
  found.share = static_cast<double>(there) / found.due;
  found.faults = -missing;
  for (const std::string& name : header) found.faults -= knows(kind, columns, name) ? 0 : 1;
  if (found.share <= 0.5 && 2 * missing > needed_columns) return std::nullopt;
  return found;
}

}  // namespace

std::span<const Column> columns_of(TableKind kind) {
  static const EnumArray<TableKind, std::vector<Column>> kColumns = [] {
    EnumArray<TableKind, std::vector<Column>> columns;
    for (const TableKind one : enum_values<TableKind>()) {
      columns[one] = list(name_of(one));
      SHARDSCAPE_CHECK(!columns[one].empty(), "a kind of table without columns", static_cast<int>(one));
    }
    return columns;
  }();
  return kColumns[kind];
}

std::span<const Column> public_plan_columns() {
  static const std::vector<Column> kColumns = list("plans of others", false);
  return kColumns;
}

bool is_prediction_of_another(std::string_view name) {
  for (const std::string_view what : {"_ttft_", "_itl_", "_e2e_"}) {
    const std::size_t at = name.find(what);
    if (at != std::string_view::npos && at > 0 && name.ends_with("_s") &&
        !names(columns_of(TableKind::open_loop), name))
      return true;
  }
  return false;
}

std::optional<TableKind> recognise(std::span<const std::string> header) {
  std::optional<TableKind> best;
  std::optional<Match> best_match;
  for (const TableKind kind : enum_values<TableKind>()) {
    const std::optional<Match> found = match(kind, columns_for(kind, header), header);
    if (!found || (best_match && *found <= *best_match)) continue;
    best = kind;
    best_match = found;
  }
  return best;
}

std::vector<TableProblem> check_header(const Table& table, TableKind kind) {
  std::vector<TableProblem> problems;
  const std::span<const Column> known = columns_for(kind, table.columns);
  std::vector<std::string_view> absent;
  for (const Column& column : known) {
    if (table.column(column.name)) continue;
    absent.push_back(column.name);
    if (column.use != needed || table.column(alternative(column.name))) continue;
    problems.push_back({table.file, 1, std::string(column.name), "missing column; every row needs it"});
  }
  for (const std::string& name : table.columns) {
    if (knows(kind, known, name)) continue;
    problems.push_back({table.file, 1, name.empty() ? "(no name)" : name,
                        fmt::format("unknown column of a table of {}{}; 'shardscape help tables' lists them",
                                    name_of(kind), did_you_mean(name, absent))});
  }
  return problems;
}

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
