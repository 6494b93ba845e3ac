// shardscape top: shows the best rows of a result file, and executes the first of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>
#include <span>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "results_schema/reading/reader.h"
#include "results_schema/rows/summary.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/confirm.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/reports/top_rows.h"
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
Columns go by their names, without the unit (step_time), as axes of plans (tp), or as paths of the study
(device.hbm.bandwidth), in every option; numbers may have units; codes compare with their names (quoted where they
hold a '-'). Without a condition on status only feasible points are shown.
A sweep that is still running, or was interrupted, can be read too.)";

/// The heading of executed times.
constexpr const char* kExecuted = "executed";

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

/// The rows of the table as `count` asks for them, where rows that tie are one.
struct TopTable {
  TopRows found;
  ChosenRows chosen;
  RowGroups groups;
};

/// Whether rows may tie: plans that differ in plan axes alone can. In rankings by other columns, and without results,
/// each row stands for itself.
bool may_tie(const ResultReader& reader, const TopQuestion& question, const TopRows& found) {
  if (!question.front.empty() || !question.per.empty() || found.any_status) return false;
  const results::ColumnGroup by = reader.find(question.by)->group;
  return by != results::ColumnGroup::id && by != results::ColumnGroup::plan;
}

/// The same rows and `more` of them.
void read_further(const ResultReader& reader, std::span<const std::uint64_t> more, ChosenRows& chosen) {
  const ChosenRows further = read_rows(reader, {more.begin(), more.end()});
  chosen.rows.insert(chosen.rows.end(), more.begin(), more.end());
  chosen.values.resize(further.values.size());
  for (std::size_t i = 0; i < further.values.size(); ++i)
    chosen.values[i].insert(chosen.values[i].end(), further.values[i].begin(), further.values[i].end());
}

TopTable table_of(const ResultReader& reader, TopQuestion question, bool count_points) {
  // On average a row of the table stands for at most so many points.
  constexpr std::uint64_t kMostTied = 32;
  // So many are found at once: the pass over the file is what takes time.
  constexpr std::uint64_t kAtOnce = 1024;
  const std::uint64_t rows = question.count;
  TopTable table;
  std::uint64_t asked = 0;  // of the file
  for (std::uint64_t count = rows;; count *= 2) {
    const bool last = count_points || count / kMostTied >= rows;
    if (count > asked) {
      question.count = asked = std::max(count, kAtOnce);
      table.found = find_top_rows(reader, question);
    }
    const std::span known(table.found.rows.data(), std::min<std::uint64_t>(table.found.rows.size(), count));
    read_further(reader, known.subspan(table.chosen.rows.size()), table.chosen);
    const bool tie = may_tie(reader, question, table.found);
    if (tie) table.groups = tied_rows(reader, table.chosen);
    // One group more than is shown, so that all of those are complete.
    if (tie && !last && table.groups.size() <= rows && known.size() == count) continue;
    table.found.rows = table.chosen.rows;
    if (!tie) {
      for (std::size_t row = 0; row < table.chosen.rows.size(); ++row) table.groups.push_back({row});
    }
    if (table.groups.size() > rows) table.groups.resize(rows);
    return table;
  }
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

/// Executes rows, and gives their executed times and their order by these.
class Confirmation {
 public:
  Confirmation(const ResultReader& reader, const TopQuestion& question, const ConfirmWish& wish)
      : reader_(reader), question_(question), wish_(wish) {
    done_.why_none = wish.why_none;
    const ColumnInfo* const by = question.by.empty() ? nullptr : reader.find(question.by);
    const bool timed = by != nullptr && by->group == results::ColumnGroup::output && by->unit == "s" &&
                       !by->name.starts_with("expected_");
    for (const char* whole : {"step_time_s", "e2e_s"}) {
      if (time_.empty() && reader.find(whole) != nullptr) time_ = timed ? by->name : whole;
    }
    if (time_.empty()) return;
    columns_ = {time_};
    if (by != nullptr && by->name != time_) columns_.push_back(by->name);
  }

  /// Executes the first rows of the groups, adds the column to the rows, and sorts these groups by their executed
  /// times.
  void run(ChosenRows& chosen, RowGroups& groups) {
    if (columns_.empty() || wish_.rows == 0 || !done_.why_none.empty()) return;
    std::vector<std::uint64_t> firsts;
    for (const auto& group : groups) firsts.push_back(chosen.rows[group.front()]);
    done_ = execute_rows(reader_, firsts, columns_, wish_);
    if (!done_.why_none.empty()) return;
    FurtherColumn column{*reader_.find(time_), kExecuted, time_, {}};
    column.info.name = "executed_" + time_;
    column.info.type = results::ColumnType::f8;
    column.values.assign(chosen.rows.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t group = 0; group < groups.size(); ++group) {
      for (const std::size_t row : groups[group]) column.values[row] = done_.values[0][group];
    }
    chosen.further.push_back(std::move(column));
    if (question_.front.empty() && question_.per.empty()) rank(groups);
  }

  /// A line that says what was executed and how the order changed; empty where nothing was to be executed.
  [[nodiscard]] std::string text() const {
    if (columns_.empty() || wish_.rows == 0) return "";
    if (!done_.why_none.empty()) return wish_.asked ? "not executed: " + done_.why_none : "";
    std::string text = fmt::format("{} executed in {} of CPU", counted(done_.rows, "row"),
                                   format_duration(done_.cpu_seconds));
    if (done_.too_long > 0) text += fmt::format(", {} would take too long or never end", done_.too_long);
    if (done_.left > 0)
      text += fmt::format(", {} not tried, as that takes longer: --confirm {} does", done_.left, wish_.rows);
    if (done_.stopped > 0) text += fmt::format(", {} left {}", done_.stopped, done_.why_stopped);
    if (!order_.empty()) text += ": " + order_;
    const std::size_t rows = done_.values.front().size();
    if (const std::size_t more = rows - std::min(rows, wish_.rows); more > 0)
      text += fmt::format("; {} more {} not executed", more, more == 1 ? "was" : "were");
    return text;
  }

 private:
  /// Sorts the executed rows among the places that they have; all others stay where they are.
  void rank(RowGroups& groups) {
    const std::vector<double>& values = done_.values.back();
    const double sign = reader_.find(columns_.back())->better == results::Better::larger ? -1 : 1;
    std::vector<std::size_t> places;
    for (std::size_t row = 0; row < values.size(); ++row) {
      if (!std::isnan(values[row])) places.push_back(row);
    }
    std::vector<std::size_t> order = places;
    std::ranges::stable_sort(order, {}, [&](std::size_t row) { return sign * values[row]; });
    if (order.size() > 1) {
      // What was not executed may belong between the others.
      const bool all = order.size() == groups.size();
      order_ = fmt::format("the order{} ", all ? "" : fmt::format(" of these {}", order.size()));
      order_ += order == places ? "holds"
                : order.front() == places.front()
                    ? "turns over below the first"
                    : fmt::format("turns over, the first was number {}", order.front() + 1);
    }
    RowGroups ranked = groups;
    for (std::size_t i = 0; i < places.size(); ++i) ranked[places[i]] = std::move(groups[order[i]]);
    groups = std::move(ranked);
  }

  const ResultReader& reader_;
  const TopQuestion& question_;
  ConfirmWish wish_;
  std::string time_;                  ///< the column whose executed value is shown
  std::vector<std::string> columns_;  ///< time_, and the column that ranks
  Executions done_;
  std::string order_;
};

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
  print_machine(std::cout, reader, in_order(chosen, rows), format,
                columns_of(reader, arguments.columns, "--columns"));
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
                {ranking, only, arguments.breakdown, any_status, table.groups});
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
