// shardscape top: the best rows of a result file.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "results_schema/reader.h"
#include "results_schema/summary.h"
#include "sweep/cli/commands.h"
#include "sweep/cli/format.h"
#include "sweep/cli/near_misses.h"
#include "sweep/cli/selection_text.h"
#include "sweep/cli/top_output.h"
#include "sweep/cli/top_rows.h"
#include "sweep/cli/usage.h"

namespace shardscape::cli {

namespace {

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

void print_heading(const ResultReader& reader, const TopRows& found, const std::vector<std::string>& ranking,
                   bool pareto, const std::string& per, std::size_t shown) {
  const auto title = reader.attributes().find("title");
  if (title != reader.attributes().end()) std::cout << echo(title->second) << ": ";
  std::cout << (pareto ? "Pareto front over " : "best by ") << join_names(ranking)
            << (per.empty() ? "" : " for each " + join_names(split(per))) << ", " << format_count(shown)
            << " of " << format_count(found.looked_at) << (found.any_status ? " matching" : " feasible")
            << " points" << in_brackets(of_the_study(reader));
  if (!reader.complete()) {
    std::cout << " so far (" << format_count(reader.point_count()) << " of "
              << format_count(reader.total_points()) << " points are there)";
  }
  std::cout << '\n';
}

int run_top(const TopArguments& arguments) {
  const RowFormat format = parse_format(arguments.format);
  const ResultReader reader = open_results(arguments.file);
  const bool pareto = !arguments.pareto.empty(), per = !arguments.per.empty();
  const std::vector<std::string> ranking =
      pareto ? split(arguments.pareto) : std::vector{ranking_column(reader, arguments).name};
  TopQuestion question;
  question.where = arguments.where;
  if (pareto) question.front = ranking;
  if (!pareto) question.by = ranking.front();
  if (per) question.per = split(arguments.per);
  const std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  question.count = arguments.count.value_or(pareto || per ? all : results::kTopCount);
  TopRows found = find_top_rows(reader, question);
  const ChosenRows chosen = read_rows(reader, std::move(found.rows));
  if (format != RowFormat::table) {
    note_selection(reader);
    print_machine(std::cout, reader, chosen, format);
    return kDone;
  }
  print_heading(reader, found, ranking, pareto, arguments.per, chosen.rows.size());
  if (!chosen.rows.empty()) {
    print_table(std::cout, reader, chosen, {ranking, arguments.breakdown, found.any_status});
  } else if (found.any_infeasible) {
    std::cout << '\n';
    print_near_misses(std::cout, near_misses(reader, stored_study(reader),
                                             [&](std::size_t row) { return found.infeasible[row]; }));
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
