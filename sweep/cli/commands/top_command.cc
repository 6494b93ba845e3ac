// shardscape top: shows the best rows of a result file, and executes the first of them.
#include <fmt/format.h>

#include <iostream>
#include <limits>
#include <optional>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "results_schema/reading/reader.h"
#include "results_schema/rows/summary.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/reports/top_rows.h"
#include "sweep/cli/reports/top_table.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"

namespace shardscape::cli {

namespace {

using results::ColumnInfo;
using results::ResultReader;

constexpr const char* kTopFooter =
    R"(Examples:
  shardscape top out.h5
  shardscape top out.h5 -n 10 --breakdown
  shardscape top out.h5 --by mfu --where 'tp <= 8 and recompute == none'
  shardscape top out.h5 --where 'status == memory' --by memory_peak_bytes
  shardscape top out.h5 --where 'status == missed' --by e2e_s    what misses a promise or constraint, and by how much
  shardscape top out.h5 --pareto step_time_s,memory_peak_bytes --format csv
  shardscape top out.h5 --per precision,tp
  shardscape top out.h5 --where 'step_time < 70 s and memory <= 60 GB' --columns tp,pp,step_time,mfu
  shardscape top out.h5 --columns list                   all names
  shardscape top out.h5 -n 20 --confirm 20               all of them executed, however long that takes

The first rows of a table are executed as well, and ranked by that. Plans that nothing tells apart are one row with
all their values; scripts get a row for each.
Where no point is feasible the nearest misses are shown, and what would make one fit.
Columns go by their names, without the unit (step_time), as axes of plans (tp), as the table heads them (step time), or
as paths of the study (device.hbm.bandwidth), in every option; numbers may have units; codes compare with their names (quoted where they
hold a '-'). Without a condition on status only feasible points are shown.
A sweep that is still running, or was interrupted, can be read too.
Next: 'launch out.h5 --point ID --for FRAMEWORK' prints what runs a plan.)";

struct TopArguments : ShownTop {
  std::filesystem::path file;
  std::string by, where, per, columns;
  bool breakdown = false;
};

/// The column by which rows are ranked: that of --by, or the study's first objective.
const ColumnInfo& ranking_column(const ResultReader& reader, const TopArguments& arguments) {
  if (!arguments.by.empty()) return require_column(reader, arguments.by, "--by");
  if (!reader.objectives().empty()) return require_column(reader, reader.objectives().front(), "objectives");
  throw BadInput(arguments.file.string() + ": names no objective; choose a column with --by");
}

void print_heading(const ResultReader& reader, const TopRows& found, const std::vector<std::string>& ranking,
                   bool pareto, const std::string& per, const RowGroups& groups) {
  std::size_t shown = 0;
  for (const auto& group : groups) shown += group.size();
  if (const std::string title = reader.attribute("title"); !title.empty()) std::cout << echo(title) << ": ";
  std::cout << (pareto ? "Pareto front over " : "best by ") << join_names(ranking)
            << (per.empty() ? "" : " for each " + join_names(split_names(per))) << ", " << format_count(shown)
            << " of " << format_count(found.looked_at) << (found.any_status ? " matching" : " feasible")
            << " points" << (shown == groups.size() ? "" : fmt::format(" in {} rows", groups.size()))
            << in_brackets(of_the_study(reader));
  if (!reader.complete()) {
    std::cout << " so far (" << format_count(reader.point_count()) << " of "
              << format_count(reader.total_points()) << " points are there)";
  }
  std::cout << '\n';
  const std::string missed = missed_text(reader.summary().reasons, reader.find("reason")->meanings);
  if (!missed.empty() && !found.any_status) std::cout << "left out, as they miss " << missed << '\n';
}

/// What is executed of the rows that a question found. A question that names statuses may find rows that have no step.
ConfirmWish confirm_wish(const TopArguments& arguments, const TopRows& found, std::size_t unasked) {
  ConfirmWish wish{
      arguments.confirm.value_or(unasked), arguments.confirm.has_value(), arguments.why_stop, {}};
  if (found.any_status)
    wish.why_none = "--where names a status, and only feasible rows have a step to execute";
  return wish;
}

/// The columns of an option's value, by their own names.
std::vector<std::string> columns_of(const ResultReader& reader, const std::string& list, const char* option) {
  std::vector<std::string> columns;
  if (list.empty()) return columns;
  for (const std::string& name : split_names(list))
    columns.push_back(require_column(reader, name, option).name);
  return columns;
}

/// Prints for scripts: a row for each point, executed only where that is asked for.
void print_for_scripts(const ResultReader& reader, const TopQuestion& question, const TopArguments& arguments,
                       RowFormat format) {
  TopRows found = find_top_rows(reader, question);
  ChosenRows chosen = read_rows(reader, std::move(found.rows));
  note_selection(reader);
  RowGroups rows;
  for (std::size_t row = 0; row < chosen.rows.size(); ++row) rows.push_back({row});
  Confirmation confirmation(reader, question, confirm_wish(arguments, found, 0));
  confirmation.run(chosen, rows);
  const std::vector<std::string> only = columns_of(reader, arguments.columns, "--columns");
  if (only.empty() && format != RowFormat::csv) {  // those are the columns of the file, as export has them
    for (FurtherColumn& column : remarks_on_rows(reader, question, chosen, rows).columns)
      chosen.further.push_back(std::move(column));
  }
  print_machine(std::cout, reader, in_order(chosen, rows), format, only);
  if (const std::string text = confirmation.text(); !text.empty()) std::cerr << text << '\n';
}

int run_top(const TopArguments& arguments, const CommonOptions& /*common*/) {
  const RowFormat format = parse_choice<RowFormat>("--format", arguments.format);
  const ResultReader reader = open_results(arguments.file);
  if (arguments.columns == "list") return print_columns(std::cout, reader), kDone;
  const std::vector<std::string> only = columns_of(reader, arguments.columns, "--columns");
  const bool pareto = !arguments.pareto.empty(), per = !arguments.per.empty();
  const std::vector<std::string> ranking = pareto ? columns_of(reader, arguments.pareto, "--pareto")
                                                  : std::vector{ranking_column(reader, arguments).name};
  TopQuestion question;
  question.where = arguments.where;
  if (pareto) question.front = ranking;
  if (!pareto) question.by = ranking.front();
  question.per = columns_of(reader, arguments.per, "--per");
  const std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  question.count = arguments.count.value_or(pareto || per ? all : results::kTopCount);
  if (format != RowFormat::table) {
    print_for_scripts(reader, question, arguments, format);
    return kDone;
  }
  TopTable table = table_of(reader, question, arguments.count_points);
  const bool any_status = table.found.any_status;
  Confirmation confirmation(reader, question, confirm_wish(arguments, table.found, kConfirmedRows));
  confirmation.run(table.chosen, table.groups);
  print_heading(reader, table.found, ranking, pareto, arguments.per, table.groups);
  if (!table.chosen.rows.empty()) {
    print_table(std::cout, reader, table.chosen,
                {ranking, only, arguments.breakdown, any_status, table.groups,
                 remarks_on_rows(reader, question, table.chosen, table.groups, only).lines});
    if (const std::string text = confirmation.text(); !text.empty()) std::cout << text << '\n';
  } else if (table.found.any_infeasible) {
    std::cout << '\n';
    print_near_misses(std::cout,
                      near_misses(reader, [&](std::size_t row) { return table.found.infeasible[row]; }));
  }
  return kDone;
}

}  // namespace

int show_top(const std::filesystem::path& file, const ShownTop& shown) {
  TopArguments arguments;
  static_cast<ShownTop&>(arguments) = shown;
  arguments.file = file;
  return run_top(arguments, {});
}

CLI::Option* add_confirm(CLI::App& command, std::optional<std::size_t>& rows) {
  return command
      .add_option(
          "--confirm", rows,
          "Rows to execute as well, message by message (default: the first 10 of a table, as far as that is "
          "quick; 0: none)")
      ->type_name("N")
      ->check(whole_number(0));
}

void add_top_command(const Program& program) {
  const auto [command, arguments] =
      program.add("top", "The best points of a result file, finished or not", kTopFooter, run_top);
  add_results(*command, arguments->file);
  add_value(*command, "-n,--count", arguments->count, "N",
            "Rows to show (default 10; all with --pareto or --per)")
      ->check(whole_number(1));
  CLI::Option* const by =
      command->add_option("--by", arguments->by, "Rank by this column (default: the first objective)");
  by->type_name("COLUMN");
  add_value(*command, "--where", arguments->where, "EXPR",
            "Only rows that satisfy an expression over the columns");
  add_value(*command, "--pareto", arguments->pareto, "A,B,...", "The Pareto front over these columns")
      ->excludes(by);
  add_value(*command, "--per", arguments->per, "A,B,...",
            "The best row of each combination of values in these columns")
      ->excludes("--pareto");
  add_value(*command, "--columns", arguments->columns, "A,B,...|list",
            "Show these columns; list: print their names, units and meanings");
  add_value(*command, "--format", arguments->format, "table|csv|json|yaml",
            "How rows are printed; default: table");
  add_confirm(*command, arguments->confirm);
  command->add_flag("-v,--breakdown", arguments->breakdown, "Add where the time goes, in percent (table)");
}

}  // namespace shardscape::cli
