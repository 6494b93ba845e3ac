// shardscape search: finds the best points of a study without visiting all of them. Without known bounds it sweeps;
// with --confirm it also searches among executed steps; several ranks may search together.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "results_schema/disk/output_file.h"
#include "results_schema/segments/assemble.h"
#include "results_schema/segments/segments.h"
#include "sweep/cli/command.h"
#include "sweep/cli/ranks/rank_agreement.h"
#include "sweep/cli/ranks/rank_part.h"
#include "sweep/cli/ranks/rank_sweep.h"
#include "sweep/cli/reports/confirm.h"
#include "sweep/cli/reports/search_report.h"
#include "sweep/cli/terminal/cpu_time.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/interrupt.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/runner/run_sweep.h"
#include "sweep/search/answer.h"
#include "sweep/study/column_names.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSearchFooter =
    R"(Examples:
  shardscape search study.yaml                            the ten best, as sweep and top would show them
  shardscape search study.yaml -n 3 -o best.h5            keep what was visited: a result file like any other
  shardscape search study.yaml -n 20 --confirm 20         the same, executed as well and ranked by that
  shardscape search study.yaml --mode flattened           the ten best executed steps: no price decides
  shardscape search study.yaml --pareto step_time_s,memory_peak_bytes
  shardscape search study.yaml --within 2%                sooner: nothing left out is better by more than 2 %
  shardscape search study.yaml --budget 10s               the best found by then, and what the rest can reach

Regions of the design space are cut off by lower bounds, memory and constraints, so the answer is that of a
sweep. Bounds are known for step_time_s, tokens_per_s_per_gpu, mfu, energy_per_token_j and cost_per_million_tokens of
training, with --mode hierarchical for expected_step_time_s, too, and for a front of one of them and memory_peak_bytes;
and for latencies, requests_per_s and goodput of loads that are simulated request by request. Those of --mode flattened
are tested, not proved; those of loads are proved but for attention, which is tested.
For anything else, and with --mode checked, every point is evaluated, and --budget is refused.
Next: 'launch best.h5 --for FRAMEWORK' prints what runs the best plan.)";

struct SearchArguments {
  StudyArguments study;
  fs::path output;
  std::uint64_t count = results::kTopCount;
  std::string pareto, within = "0%", budget, format = "table", progress = "auto";
  std::string execution;  ///< mode that replaces the study's
  bool force = false;
  int threads = 0;  ///< 0: as many as the machine has
  std::optional<std::size_t> confirm;
};

double parse_within(const std::string& text) {
  if (const auto percent = number_before(text, "%"); percent && *percent <= 1000) return *percent / 100;
  throw BadInput("--within: '" + text + "' is not a share from 0% to 1000%, such as 2%");
}

sweep::SearchGoal goal_of(const SearchArguments& arguments, const sweep::SweepJob& job) {
  sweep::SearchGoal goal;
  goal.count = arguments.count;
  goal.within = parse_within(arguments.within);
  goal.front = !arguments.pareto.empty();
  if (!goal.front) {
    if (job.study().objectives.empty())
      throw BadInput(job.study().at("objectives") + "names none; search ranks by the first one");
    goal.objectives = {job.study().objectives.front()};
    return goal;
  }
  goal.objectives = split_names(arguments.pareto);
  const std::vector<std::string> names = objective_columns();
  for (std::string& name : goal.objectives) {
    name = sweep::column_meant(name, names);
    const results::ColumnInfo* const column = job.columns().find(name);
    if (column != nullptr && column->better != results::Better::neither) continue;
    if (column == nullptr && std::ranges::find(names, name) != names.end())
      throw BadInput(fmt::format("--pareto: {}: store.columns leaves out '{}', or it is of another phase",
                                 arguments.study.file.string(), name));
    throw BadInput(fmt::format("--pareto: '{}' is no column with a better direction{}; such columns: {}",
                               name, did_you_mean(name, names), join_names(names)));
  }
  return goal;
}

/// The objective that has floors; the bounds and the best value so far are values of it.
std::string bounded_objective(const sweep::SearchGoal& goal) {
  const auto bounded = [](const std::string& name) { return sweep::time_objective(name).has_value(); };
  const auto found = std::ranges::find_if(goal.objectives, bounded);
  return found == goal.objectives.end() ? goal.objectives.front() : *found;
}

/// A folder for a file that the user did not ask to keep.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "shardscape-search-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw fs::filesystem_error("no temporary folder", fs::temp_directory_path(),
                                 std::error_code(errno, std::generic_category()));
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Checks the place of the file before any work is done.
results::OutputPath checked_place(const fs::path& output, bool force, const sweep::Study& study) {
  const fs::path parts = results::parts_folder(output);
  std::error_code error;
  if (!force && fs::exists(parts, error))
    throw BadInput(parts.string() + ": holds an unfinished sweep; --force replaces it");
  return {output, force, input_files(study)};
}

/// The study with all rows stored: a search keeps all points that it visits and shows the best, and store.rows is only
/// for sweeps.
sweep::Study with_all_rows(sweep::Study study) {
  study.stored_rows = {};
  return study;
}

/// What a process gets from its command line.
struct WantedSearch {
  WantedSearch(const SearchArguments& arguments, const CommonOptions& common, const ranks::Ranks& ranks)
      : mode(parse_choice<ProgressMode>("--progress", arguments.progress)),
        budget(parse_budget(arguments.budget)),
        study(with_all_rows(load(arguments.study, common, ranks.rank() != 0))),
        job(study),
        goal((require_points(job), goal_of(arguments, job))),
        threads(arguments.threads > 0 ? arguments.threads : default_threads(ranks)) {
    if (ranks.rank() != 0) mode = ProgressMode::none;
    unbounded = why_unbounded(job, goal);
    executes = arguments.confirm.value_or(0) > 0 && study.mode != ExecutionMode::flattened &&
               study.phase() == Phase::training;
    if (const std::string why = unbounded.empty() ? why_too_many_regions(job) : ""; !why.empty())
      throw BadInput(study.at("space") + why);
    // Across machines the ranks share no folder except that of the user's file.
    shared_sweep = !arguments.output.empty() || ranks.on_this_machine() == ranks.size();
  }
  WantedSearch(const WantedSearch&) = delete;
  WantedSearch& operator=(const WantedSearch&) = delete;

  double began = cpu_seconds();
  ProgressMode mode;
  Budget budget;
  sweep::Study study;
  sweep::SweepJob job;
  sweep::SearchGoal goal;
  int threads;
  /// Why there are no bounds, so that every point must be evaluated; empty where there are some.
  std::string unbounded;
  bool shared_sweep = false;  ///< whether all ranks then sweep, rather than rank 0 alone
  bool executes = false;      ///< whether the plan that executes best is searched as well
};

/// Options with which points are evaluated in full, as a sweep does.
sweep::SweepOptions sweep_options(const WantedSearch& wanted, const CommonOptions& common,
                                  const std::atomic<bool>* stop) {
  sweep::SweepOptions options;
  options.threads = wanted.threads;
  options.evaluator = sweep::simulator_factory({.reference = common.reference, .mode = wanted.study.mode});
  options.stop = stop;
  return options;
}

/// Where the file of points is written.
struct Target {
  fs::path output;
  bool force = false;
  results::OutputPath place;

  [[nodiscard]] results::SegmentStore store(const results::Manifest& manifest) const {
    const fs::path parts = results::parts_folder(output);
    if (force) results::SegmentStore::discard(parts);
    return results::SegmentStore::create(parts, manifest, force);
  }
};

/// Writes the points that a search has visited; returns how many have no fault samples, as their execution was ended
/// early.
std::uint64_t write_visited(const WantedSearch& wanted, const sweep::SearchOutcome& found, const Target& to,
                            const CommonOptions& common, const std::atomic<bool>& stop) {
  // A file has at least one row: without visited points it has the first point.
  const sweep::SweepJob job(wanted.job,
                            found.visited.empty() ? std::vector<std::uint64_t>{0} : found.visited);
  const results::RunInfo run = run_info(common, wanted.threads);
  results::Manifest manifest = job.manifest(run);
  manifest.search = found.info;
  sweep::SweepOptions options = sweep_options(wanted, common, nullptr);
  if (!found.predictions.empty()) options.known = {found.visited, found.predictions};
  // In flattened mode every fault sample is another execution, so that sampling may exceed the budget and is ended.
  // (Evaluating priced points takes no longer than the search itself.)
  if (wanted.study.mode == ExecutionMode::flattened)
    options.go_on_sampling = [&] {
      return !stop.load(std::memory_order_relaxed) &&
             cpu_seconds() - wanted.began < wanted.budget.cpu_seconds;
    };
  auto store = to.store(manifest);
  const sweep::SweepOutcome written = run_sweep(job, store, options);
  results::assemble(std::move(store), to.place, run);
  return written.progress.tally.unsampled;
}

/// Sweeps every point, with the ranks of `word` or on rank 0 alone. False where it was interrupted; nothing is left
/// then.
bool write_all(const WantedSearch& wanted, const Target& to, const CommonOptions& common,
               const std::atomic<bool>& stop, Word& word, ranks::Ranks& ranks) {
  const std::unique_ptr<ranks::Ranks> alone = ranks::alone();
  const results::RunInfo run = run_info(common, wanted.threads * (wanted.shared_sweep ? ranks.size() : 1));
  auto store = to.store(wanted.job.manifest(run));
  const sweep::SharedStart start{store.missing(), store.sealed_rows(), {}, {}};
  if (wanted.shared_sweep) word.begin(fs::absolute(store.folder()), start);
  Together together;
  try {
    together = compute_together(wanted.job, store, sweep_options(wanted, common, &stop), start,
                                wanted.shared_sweep ? ranks : *alone);
  } catch (...) {
    std::move(store).abandon();
    throw;
  }
  if (together.outcome.complete) return assemble(together, std::move(store), to.place, run).has_value();
  std::move(store).abandon();
  return false;
}

/// The search of this process, once all ranks agree; null where rank 0 is about to end it, because it or another rank
/// cannot begin. What is wrong is an exception on rank 0.
std::unique_ptr<WantedSearch> agree(const SearchArguments& arguments, const CommonOptions& common,
                                    ranks::Ranks& ranks) {
  std::unique_ptr<WantedSearch> wanted;
  RankView view;
  const std::exception_ptr failure = note_failure(view, [&] {
    wanted = std::make_unique<WantedSearch>(arguments, common, ranks);
    const results::Manifest manifest = wanted->job.manifest(run_info(common, wanted->threads));
    view.facts = facts_of(manifest, arguments.output.string(), common.reference);
    view.facts.push_back({"--count", std::to_string(arguments.count)});
    view.facts.push_back({"--pareto", arguments.pareto});
    view.facts.push_back({"--within", arguments.within});
    view.facts.push_back({"--budget", arguments.budget});
    view.facts.push_back({"--confirm", std::to_string(arguments.confirm.value_or(0))});
  });
  agree_on(view, failure, ranks);
  return wanted;
}

struct RanSearch {
  sweep::SearchOutcome outcome;
  double cpu = 0;  ///< CPU seconds of all ranks; known on rank 0
};

/// The number of points that the ranks may visit together: each takes a little at a time, so that ranks which visit
/// more get more.
class PointBudget {
 public:
  PointBudget(double points, ranks::Ranks& ranks)
      : points_(points), portion_(std::max(1.0, std::floor(points / (32 * ranks.size())))), ranks_(ranks) {}

  /// Whether this rank gets no other point. Not to be called from two threads at once.
  bool used_up() {
    if (ranks_.size() == 1 || points_ == HUGE_VAL) return begun_ >= points_;
    while (begun_ >= granted_) {
      constexpr int kCounter = 1;  // counter 0 is used by the search itself
      const double others = portion_ * static_cast<double>(ranks_.take(kCounter));
      if (others >= points_) return true;
      granted_ += std::min(portion_, points_ - others);
    }
    return false;
  }

  /// Whether this rank may visit another point, which then counts.
  bool allows_one() {
    if (used_up()) return false;
    ++begun_;
    return true;
  }

 private:
  double points_, portion_;
  double granted_ = 0, begun_ = 0;  ///< points granted to this rank, and those that it has begun to visit
  ranks::Ranks& ranks_;
};

/// CPU seconds that this rank has left of the budget.
double time_left(const WantedSearch& wanted, const ranks::Ranks& ranks) {
  return wanted.budget.cpu_seconds / ranks.size() - (cpu_seconds() - wanted.began);
}

/// Searches, as far as the budget goes; every rank must call it. `job`: that of `wanted`, in one of the modes.
RanSearch run_search(const sweep::SweepJob& job, const sweep::SearchGoal& goal, const WantedSearch& wanted,
                     const CommonOptions& common, const std::atomic<bool>& stop, ranks::Ranks& ranks,
                     PointBudget& points) {
  SearchReporter reporter(job, bounded_objective(goal), wanted.mode);
  const double start = cpu_seconds(), left = time_left(wanted, ranks);
  // Asking for CPU time takes time itself, so it is done only every few milliseconds.
  constexpr auto kUnasked = std::chrono::milliseconds(2);
  std::chrono::steady_clock::time_point asked{};
  sweep::SearchOptions options;
  options.hints = sweep::simulator_factory({.reference = common.reference});
  options.load_floors = sweep::simulator_factory({.reference = common.reference, .load_floors = true});
  options.evaluator = sweep::simulator_factory(
      {.reference = common.reference, .mode = job.study().mode, .most_events = kMostRowEvents});
  // Half of the budget is for prices that find what to execute first, so that the rest suffices to execute something.
  options.seek_hints = [&] { return cpu_seconds() - start < left / 2; };
  options.probes = wanted.budget.cpu_seconds > 0 && wanted.budget.points == HUGE_VAL;
  options.threads = wanted.threads;
  options.together = &ranks;
  options.go_on = [&](const sweep::SearchProgress& progress) {
    if (stop.load(std::memory_order_relaxed)) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now - asked < kUnasked) return true;
    asked = now;
    reporter.update(progress);
    return time_left(wanted, ranks) > 0;
  };
  options.may_visit = [&] { return points.allows_one(); };
  RanSearch ran{search(job, goal, options)};
  for (const std::string& seconds : ranks.gather(json_text(nlohmann::json(cpu_seconds() - start))))
    ran.cpu += nlohmann::json::parse(seconds).get<double>();
  reporter.close();
  return ran;
}

/// Finds the plan that executes best with what the search of prices has left of the budget. Every rank must call it;
/// returns the result as text on rank 0.
std::string run_executed(const WantedSearch& wanted, const CommonOptions& common,
                         const std::atomic<bool>& stop, ranks::Ranks& ranks, PointBudget& points) {
  sweep::Study study = wanted.study;
  study.mode = ExecutionMode::flattened;
  const sweep::SweepJob job(study, wanted.job);
  const sweep::SearchGoal first{
      .count = 1, .objectives = wanted.goal.objectives, .within = wanted.goal.within};
  if (const std::string why = why_unbounded(job, first); !why.empty())
    return "executed: which plan is best of all is not known, as " + why;
  const RanSearch ran = run_search(job, first, wanted, common, stop, ranks, points);
  return executed_text(job, first, ran.outcome, ran.cpu);
}

/// Messages for signals: a search seals nothing from which it could be continued. It may show, and execute, the rows of
/// its file when it is ended.
InterruptTexts interrupt_texts(const SearchArguments& arguments, const CommonOptions& common,
                               bool unbounded) {
  std::vector<std::string> again = common.command_line;
  if (!arguments.output.empty() && !arguments.force)
    again.emplace_back("--force");  // to replace what may then be there
  return {
      unbounded ? "stopping after the blocks in flight, of which nothing is kept; once more to leave at once"
                : "stopping; what was found so far follows. Once more to leave at once, without it",
      (arguments.output.empty() ? "nothing was kept; begin again with\n  "
                                : "the file, where it is there, is whole, and nothing else was kept; begin "
                                  "again with\n  ") +
          shell_line(again)};
}

/// Rank 0's part: searches with the others, and shows what was found.
int lead(const SearchArguments& arguments, const CommonOptions& common, ranks::Ranks& ranks) {
  Word word(ranks);
  const std::unique_ptr<WantedSearch> wanted = agree(arguments, common, ranks);
  const sweep::SweepJob& job = wanted->job;
  const sweep::SearchGoal& goal = wanted->goal;
  std::optional<TemporaryFolder> temporary;
  if (arguments.output.empty()) temporary.emplace();
  const fs::path output = temporary ? temporary->path() / "search.h5" : arguments.output;
  const Target target{output, arguments.force, checked_place(output, arguments.force, wanted->study)};
  const InterruptGuard interrupt(interrupt_texts(arguments, common, !wanted->unbounded.empty()), common.stop);

  const std::optional<std::uint64_t> shown = goal.front ? std::nullopt : std::optional(goal.count);
  const auto show = [&] {
    return show_top(output, {.count = shown,
                             .count_points = true,
                             .pareto = arguments.pareto,
                             .format = arguments.format,
                             .confirm = arguments.confirm,
                             .why_stop = [&]() -> const char* {
                               if (interrupt.stop()) return kStopped;
                               const double left = wanted->budget.cpu_seconds / ranks.size();
                               return cpu_seconds() - wanted->began < left ? nullptr
                                                                           : "as the budget was used up";
                             }});
  };
  if (!wanted->unbounded.empty()) {
    if (!arguments.budget.empty())
      throw BadInput(
          fmt::format("--budget: search prunes by bounds, and {}: all {} points would be evaluated, whatever "
                      "the budget; `shardscape sweep --sample N` evaluates so many of them",
                      wanted->unbounded, format_count(job.space().size())));
    std::cerr << "warning: search prunes by bounds, and " << wanted->unbounded
              << ": every point is evaluated, all " << format_count(job.space().size())
              << " of them, as sweep does"
              << (wanted->shared_sweep ? "" : ", by rank 0 alone; with -o the ranks share its folder")
              << "\n";
    if (!write_all(*wanted, target, common, interrupt.stop(), word, ranks)) return kInterrupted;
    return show();
  }
  word.begin();
  PointBudget points(wanted->budget.points, ranks);
  const RanSearch ran = in_common(ranks, [&] {
    return run_search(wanted->job, wanted->goal, *wanted, common, interrupt.stop(), ranks, points);
  });
  std::optional<Word> execute;
  if (wanted->executes && !goal.front) execute.emplace(ranks);
  const sweep::SearchOutcome& found = ran.outcome;
  const bool interrupted = interrupt.stop().load();
  const double start = cpu_seconds();
  const std::optional<double> worst =
      found.best.empty() || goal.front ? std::nullopt : std::optional(found.best.back().objective);
  std::ostream& out = arguments.format == "table" ? std::cout : std::cerr;
  if (found.visited.empty() && !found.info.complete) {
    print_search(out, job, found, bounded_objective(goal), worst, ran.cpu + cpu_seconds() - start);
    std::cerr << "no point was visited before the search was stopped: there is nothing to show"
              << (arguments.output.empty() ? "" : " or to keep") << "\n";
    return interrupted ? kInterrupted : kDone;
  }
  const std::uint64_t unsampled = write_visited(*wanted, found, target, common, interrupt.stop());
  print_search(out, job, found, bounded_objective(goal), worst, ran.cpu + cpu_seconds() - start);
  if (unsampled > 0)
    out << format_count(unsampled) << " of them without fault samples: stopped before they were executed\n";
  const int code = show();
  if (wanted->executes && goal.front)
    out << "executed: rows alone; that no other plan executes better is not confirmed of a front\n";
  if (execute && found.info.complete && !interrupt.stop().load() &&
      (time_left(*wanted, ranks) <= 0 || points.used_up())) {
    out << "executed: rows alone; the budget was used up before the plan that executes best was looked for\n";
  } else if (execute && found.info.complete && !interrupt.stop().load()) {
    execute->begin();
    out << in_common(ranks, [&] { return run_executed(*wanted, common, interrupt.stop(), ranks, points); })
        << '\n';
  }
  return interrupted || interrupt.stop().load() ? kInterrupted : code;
}

/// The part of any other rank: searches or sweeps, and prints nothing.
void follow(const SearchArguments& arguments, const CommonOptions& common, ranks::Ranks& ranks) {
  const std::unique_ptr<WantedSearch> wanted = agree(arguments, common, ranks);
  if (wanted && !wanted->unbounded.empty()) {
    const Heard heard = hear(ranks);
    if (!heard.begin) return;
    const InterruptGuard interrupt({}, common.stop);
    const results::Manifest manifest = wanted->job.manifest(run_info(common, wanted->threads));
    return follow_together(wanted->job, manifest, sweep_options(*wanted, common, &interrupt.stop()), heard,
                           ranks);
  }
  if (!hear_begin(ranks)) return;
  const InterruptGuard interrupt({}, common.stop);
  PointBudget points(wanted->budget.points, ranks);
  const RanSearch ran =
      run_search(wanted->job, wanted->goal, *wanted, common, interrupt.stop(), ranks, points);
  if (wanted->executes && !wanted->goal.front && hear_begin(ranks))
    run_executed(*wanted, common, interrupt.stop(), ranks, points);
}

int run_search_command(const SearchArguments& given, const CommonOptions& common) {
  SearchArguments arguments = given;
  if (!given.execution.empty()) arguments.study.overrides.push_back("mode=" + given.execution);
  const std::unique_ptr<ranks::Ranks> ranks = join_ranks(common);
  return run_together(
      *ranks, [&] { return lead(arguments, common, *ranks); }, [&] { follow(arguments, common, *ranks); });
}

}  // namespace

void add_search_command(const Program& program) {
  const auto [command, arguments] =
      program.add("search", "The best points of a study, certified, without visiting them all", kSearchFooter,
                  run_search_command);
  add_study_arguments(*command, arguments->study);
  add_value(*command, "-n,--count", arguments->count, "N", "Points to find (default 10)")
      ->check(whole_number(1, 1'000'000));
  add_value(*command, "--pareto", arguments->pareto, "A,B,...",
            "Find the Pareto front over these columns instead")
      ->excludes("-n");
  add_value(*command, "--within", arguments->within, "SHARE",
            "Stop where nothing left out can be better by more than this share (default 0%: exact)");
  add_value(
      *command, "--budget", arguments->budget, "BUDGET",
      "CPU time (500ms, 10s, 5min) or points ('20000 points') after which the best found is the answer");
  add_value(*command, "-o,--output", arguments->output, "OUT.h5",
            "Keep the points that were visited in this result file");
  add_force(*command, arguments->force);
  add_value(*command, "--threads", arguments->threads, "N",
            "Worker threads (default: all); the answer and the file are the same for any number")
      ->check(whole_number(1, 4096));
  add_value(*command, "--format", arguments->format, "table|csv|json|yaml",
            "How rows are printed; default: table")
      ->check(one_of({"table", "csv", "json", "yaml"}));
  add_progress(*command, arguments->progress);
  add_confirm(*command, arguments->confirm);
  add_value(*command, "--mode", arguments->execution, "hierarchical|flattened|checked",
            "Instead of the study's own; flattened: the best executed steps")
      ->check(one_of({"hierarchical", "flattened", "checked"}));
}

}  // namespace shardscape::cli
