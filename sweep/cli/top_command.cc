// shardscape top: the best rows of a result file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "engine/spec/plan_axes.h"
#include "results_schema/reader.h"
#include "results_schema/summary.h"
#include "sweep/cli/commands.h"
#include "sweep/cli/format.h"
#include "sweep/cli/near_misses.h"
#include "sweep/cli/selection_text.h"
#include "sweep/cli/top_output.h"
#include "sweep/cli/usage.h"
#include "sweep/space/expression.h"

namespace shardscape::cli {

namespace {

using results::Better;
using results::ColumnInfo;
using results::ResultReader;

constexpr const char* kTopFooter =
    "Examples:\n"
    "  shardscape top out.h5\n"
    "  shardscape top out.h5 -n 10 --breakdown\n"
    "  shardscape top out.h5 --by mfu --where 'tp <= 8 and recompute == none'\n"
    "  shardscape top out.h5 --where 'status == memory' --by memory_peak_bytes\n"
    "  shardscape top out.h5 --pareto step_time_s,memory_peak_bytes --format csv\n"
    "  shardscape top out.h5 --per precision,tp\n"
    "\n"
    "Where no point is feasible the nearest misses are shown, and what would make one fit.\n"
    "--where takes the names of all columns, and tp, sp, cp, pp, dp, zero, mbs, vpp, order; codes compare "
    "with their\n"
    "names (quoted where they hold a '-'). Without a condition on status only feasible points are shown.\n"
    "A sweep that is still running, or was interrupted, can be read too.";

struct TopArguments {
  std::filesystem::path file;
  std::optional<std::uint64_t> count;
  std::string by, where, pareto, per;
  std::string format = "table";
  bool breakdown = false;
};

/// A column by its name or short name. BadInput, blaming `option`, where there is none.
const ColumnInfo& require_column(const ResultReader& reader, std::string_view name, std::string_view option) {
  for (const PlanAxisRow& row : kPlanRows) {
    if (name == row.name) name = row.column;
  }
  if (const ColumnInfo* const column = reader.find(name)) return *column;
  std::vector<std::string> names;
  for (const ColumnInfo& column : reader.columns()) names.push_back(column.name);
  throw BadInput(fmt::format("{}: no column '{}'{}; columns: {}", option, name, did_you_mean(name, names),
                             join_names(names)));
}

/// Which rows a condition keeps.
class RowFilter {
 public:
  RowFilter(const ResultReader& reader, const std::string& text) {
    const std::vector<sweep::ExpressionName> names = name_table(reader);
    const auto condition = sweep::Expression::parse(text, names);
    if (!condition) {
      throw BadInput(fmt::format("--where: position {} of \"{}\": {}", condition.error().offset + 1, text,
                                 condition.error().message));
    }
    std::vector<double> values(names.size());
    std::vector<std::vector<double>> columns;
    for (const std::size_t name : condition->references()) columns.push_back(reader.read(columns_[name]));
    on_status_ = std::ranges::any_of(condition->references(),
                                     [&](std::size_t name) { return columns_[name] == "status"; });
    keep_.resize(reader.row_count());
    for (std::size_t row = 0; row < keep_.size(); ++row) {
      for (std::size_t i = 0; i < columns.size(); ++i) values[condition->references()[i]] = columns[i][row];
      keep_[row] = condition->holds(values);
    }
  }

  [[nodiscard]] bool keeps(std::size_t row) const { return keep_[row]; }
  [[nodiscard]] bool on_status() const { return on_status_; }

 private:
  std::vector<sweep::ExpressionName> name_table(const ResultReader& reader) {
    std::vector<sweep::ExpressionName> names;
    const auto add = [&](std::string_view name, const ColumnInfo& column) {
      const bool coded = !column.meanings.empty();
      names.push_back(
          {std::string(name), coded ? sweep::NameKind::choice : sweep::NameKind::number, column.meanings});
      columns_.push_back(column.name);
    };
    for (const ColumnInfo& column : reader.columns()) add(column.name, column);
    for (const PlanAxisRow& row : kPlanRows) {
      if (const ColumnInfo* const column = reader.find(row.column);
          column != nullptr && row.name != row.column)
        add(row.name, *column);
    }
    return names;
  }

  std::vector<std::string> columns_;  ///< of each name
  std::vector<bool> keep_;
  bool on_status_ = false;
};

/// The rows that are looked at: those of --where, feasible ones unless it says something on the status.
struct Candidates {
  std::vector<std::uint64_t> rows;
  bool any_status = false;
  std::vector<std::uint64_t> infeasible;  ///< rows of --where that are not looked at
};
Candidates candidates(const ResultReader& reader, const std::string& where) {
  std::optional<RowFilter> filter;
  if (!where.empty()) filter.emplace(reader, where);
  Candidates found;
  found.any_status = filter && filter->on_status();
  const std::vector<double> status = reader.read("status");
  for (std::size_t row = 0; row < status.size(); ++row) {
    const bool feasible = static_cast<Status>(status[row]) == Status::ok;
    if (filter && !filter->keeps(row)) continue;
    (feasible || found.any_status ? found.rows : found.infeasible).push_back(row);
  }
  return found;
}

/// Rows by one column, the best first, then by row; rows without a value last.
class Ranking {
 public:
  Ranking(const ResultReader& reader, const ColumnInfo& by)
      : values_(reader.read(by.name)), sign_(by.better == Better::larger ? -1 : 1) {}

  bool operator()(std::uint64_t a, std::uint64_t b) const {
    const bool a_missing = std::isnan(values_[a]), b_missing = std::isnan(values_[b]);
    if (a_missing != b_missing) return b_missing;
    if (!a_missing && values_[a] != values_[b]) return sign_ * values_[a] < sign_ * values_[b];
    return a < b;
  }

 private:
  std::vector<double> values_;
  double sign_;
};

/// The best `count` of the rows.
std::vector<std::uint64_t> best_rows(const ResultReader& reader, std::vector<std::uint64_t> rows,
                                     const ColumnInfo& by, std::uint64_t count) {
  const Ranking before(reader, by);
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(count, rows.size()));
  std::partial_sort(rows.begin(), middle, rows.end(), before);
  rows.erase(middle, rows.end());
  return rows;
}

/// The best row of each combination of values in the columns, in the order of those values.
std::vector<std::uint64_t> best_rows_per(const ResultReader& reader, const std::vector<std::uint64_t>& rows,
                                         const ColumnInfo& by, const std::vector<std::string>& names) {
  std::vector<std::vector<double>> columns;
  for (const std::string& name : names)
    columns.push_back(reader.read(require_column(reader, name, "--per").name));
  const Ranking before(reader, by);
  std::map<std::vector<double>, std::uint64_t> best;
  std::vector<double> key(columns.size());
  for (const std::uint64_t row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const double value = columns[i][row];
      key[i] = std::isnan(value) ? std::numeric_limits<double>::infinity() : value;  // NaN has no order
    }
    const auto [it, fresh] = best.emplace(key, row);
    if (!fresh && before(row, it->second)) it->second = row;
  }
  std::vector<std::uint64_t> result;
  for (const auto& [values, row] : best) result.push_back(row);
  return result;
}

/// The rows that no other row beats in all of the columns at once, best in the first column first.
std::vector<std::uint64_t> pareto_rows(const ResultReader& reader, const std::vector<std::uint64_t>& rows,
                                       const std::vector<std::string>& names) {
  std::vector<Better> directions;
  std::vector<std::vector<double>> columns;
  for (const std::string& name : names) {
    const ColumnInfo& column = require_column(reader, name, "--pareto");
    directions.push_back(column.better == Better::larger ? Better::larger : Better::smaller);
    columns.push_back(reader.read(column.name));
  }
  results::SummaryBuilder builder(directions);
  std::vector<double> values(columns.size());
  for (const std::uint64_t row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) values[i] = columns[i][row];
    builder.add(row, Status::ok, Reason::none, values);
  }
  std::vector<std::uint64_t> front;
  for (const results::RankedPoint& point : builder.finish().pareto) front.push_back(point.point_id);
  return front;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// What the rows are ranked by: --by, or the study's first objective.
const ColumnInfo& ranking_column(const ResultReader& reader, const TopArguments& arguments) {
  if (!arguments.by.empty()) return require_column(reader, arguments.by, "--by");
  if (!reader.objectives().empty()) return require_column(reader, reader.objectives().front(), "objectives");
  throw BadInput(arguments.file.string() + ": names no objective; choose a column with --by");
}

RowFormat parse_format(const std::string& text) {
  if (const auto format = parse_enum<RowFormat>(text)) return *format;
  const auto names = enum_names<RowFormat>();
  throw BadInput("--format: '" + text + "' is not one of " + join_names(names) + did_you_mean(text, names));
}

void print_heading(const ResultReader& reader, const Candidates& found,
                   const std::vector<std::string>& ranking, bool pareto, const std::string& per,
                   std::size_t shown) {
  const auto title = reader.attributes().find("title");
  if (title != reader.attributes().end()) std::cout << echo(title->second) << ": ";
  std::cout << (pareto ? "Pareto front over " : "best by ") << join_names(ranking)
            << (per.empty() ? "" : " for each " + join_names(split(per))) << ", " << format_count(shown)
            << " of " << format_count(found.rows.size()) << (found.any_status ? " matching" : " feasible")
            << " points" << in_brackets(of_the_study(reader));
  if (!reader.complete()) {
    std::cout << " so far (" << format_count(reader.row_count()) << " of "
              << format_count(reader.total_points()) << " points are there)";
  }
  std::cout << '\n';
}

int run_top(const TopArguments& arguments) {
  const RowFormat format = parse_format(arguments.format);
  const ResultReader reader = open_results(arguments.file);
  const bool pareto = !arguments.pareto.empty();
  const std::vector<std::string> ranking =
      pareto ? split(arguments.pareto) : std::vector{ranking_column(reader, arguments).name};
  for (const std::string& name : ranking) require_column(reader, name, pareto ? "--pareto" : "--by");
  const Candidates found = candidates(reader, arguments.where);

  std::vector<std::uint64_t> rows;
  if (pareto) {
    rows = pareto_rows(reader, found.rows, ranking);
    if (arguments.count && rows.size() > *arguments.count) rows.resize(*arguments.count);
  } else if (!arguments.per.empty()) {
    rows = best_rows_per(reader, found.rows, ranking_column(reader, arguments), split(arguments.per));
    if (arguments.count && rows.size() > *arguments.count) rows.resize(*arguments.count);
  } else {
    rows = best_rows(reader, found.rows, ranking_column(reader, arguments),
                     arguments.count.value_or(results::kTopCount));
  }
  const ChosenRows chosen = read_rows(reader, std::move(rows));
  if (format != RowFormat::table) {
    note_selection(reader);
    print_machine(std::cout, reader, chosen, format);
    return kDone;
  }
  print_heading(reader, found, ranking, pareto, arguments.per, chosen.rows.size());
  if (!chosen.rows.empty()) {
    print_table(std::cout, reader, chosen, {ranking, arguments.breakdown, found.any_status});
  } else if (!found.infeasible.empty()) {
    std::cout << '\n';
    print_near_misses(std::cout, near_misses(reader, stored_study(reader), [&](std::size_t row) {
                        return std::ranges::binary_search(found.infeasible, row);
                      }));
  }
  return kDone;
}

}  // namespace

int show_top(const std::filesystem::path& file, std::optional<std::uint64_t> count, const std::string& pareto,
             const std::string& format) {
  TopArguments arguments;
  arguments.file = file;
  arguments.count = count;
  arguments.pareto = pareto;
  arguments.format = format;
  return run_top(arguments);
}

void add_top_command(CLI::App& app, const CommonOptions& /*common*/, Action& action) {
  CLI::App* const command = app.add_subcommand("top", "The best points of a result file, finished or not");
  const auto arguments = std::make_shared<TopArguments>();
  command->add_option("RESULTS", arguments->file, "OUT.h5, or the OUT.h5.parts of a running sweep")
      ->required();
  command->add_option("-n,--count", arguments->count, "Rows to show (default 10; all with --pareto or --per)")
      ->type_name("N")
      ->check(whole_number(1));
  CLI::Option* const by =
      command->add_option("--by", arguments->by, "Rank by this column (default: the first objective)");
  by->type_name("COLUMN");
  command->add_option("--where", arguments->where, "Only rows that satisfy an expression over the columns")
      ->type_name("EXPR");
  command->add_option("--pareto", arguments->pareto, "The Pareto front over these columns")
      ->type_name("A,B,...")
      ->excludes(by);
  command->add_option("--per", arguments->per, "The best row of each combination of values in these columns")
      ->type_name("A,B,...")
      ->excludes("--pareto");
  command->add_option("--format", arguments->format, "table, csv, json or yaml")->type_name("FORMAT");
  command->add_flag("-v,--breakdown", arguments->breakdown, "Add where the time goes, in percent (table)");
  command->footer(kTopFooter);
  run_when_chosen(*command, action, [arguments] { return run_top(*arguments); });
}

}  // namespace shardscape::cli
