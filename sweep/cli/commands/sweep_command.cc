// shardscape sweep: evaluates every point of a study into one result file. Rank 0 leads: it makes or resumes the parts
// folder, computes with the other ranks, assembles the file and shows the best rows.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "engine/base/safe_text.h"
#include "engine/base/words.h"
#include "results_schema/disk/output_file.h"
#include "results_schema/reading/reader.h"
#include "results_schema/segments/assemble.h"
#include "results_schema/segments/segments.h"
#include "sweep/cli/command.h"
#include "sweep/cli/ranks/rank_agreement.h"
#include "sweep/cli/ranks/rank_part.h"
#include "sweep/cli/ranks/rank_sweep.h"
#include "sweep/cli/reports/confirm.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/reports/sweep_progress.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/interrupt.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/runner/run_sweep.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;
using results::SegmentStore;

constexpr const char* kSweepFooter =
    R"(Examples:
  shardscape sweep study.yaml -o out.h5
  shardscape sweep study.yaml -o out.h5 --resume          after an interruption
  shardscape sweep study.yaml -o out.h5 --resume --repair    the same, damaged segments are computed again
  shardscape sweep study.yaml -o a.h5 --shard 3/16        one part of a job array
  mpirun -n 4 shardscape sweep study.yaml -o out.h5       four processes share it; likewise srun
  shardscape sweep study.yaml -o out.h5 --confirm 0       the best are shown as predicted, none executed
  shardscape sweep study.yaml -o s.h5 --sample 20000      a sample that stands for the whole space
  shardscape sweep study.yaml -o out.h5 --set workload.global_batch=256 --progress json

The first Ctrl-C finishes the blocks in flight and keeps them; the second leaves at once. Both can be resumed.
Next: 'top out.h5', and 'launch out.h5 --for FRAMEWORK' prints what runs the best plan.)";

struct SweepArguments {
  StudyArguments study;
  fs::path output;
  bool resume = false, repair = false, force = false, stats = false;
  int threads = 0;  ///< 0: as many as the machine has
  std::optional<std::uint64_t> limit, sample;
  std::uint64_t sample_seed = 0;
  std::string shard = "1/1";
  std::string progress = "auto";
  std::optional<std::size_t> confirm;
};

/// Number of best rows that are shown at the end.
constexpr std::uint64_t kShownRows = 5;

sweep::Shard parse_shard(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() == 2) {
    const auto index = to_number<decltype(sweep::Shard::index)>(parts[0]);
    const auto count = to_number<decltype(sweep::Shard::count)>(parts[1]);
    if (index && count && *index >= 1 && *index <= *count) return {*index, *count};
  }
  throw BadInput("--shard: '" + text + "' is not I/N with 1 <= I <= N, such as 3/16");
}

/// A sweep that may begin: its locked folder for rows, and the place of the finished file.
struct Beginning {
  SegmentStore store;
  results::OutputPath output;
};

/// The result where `--resume` finds that this very sweep is already finished.
struct FinishedAlready {};

/// Checks the output path before any work is done, and again once the parts folder is locked, since another sweep into
/// the same file may have begun or ended in between.
class SweepOutput {
 public:
  SweepOutput(const SweepArguments& arguments, const results::Manifest& manifest, const sweep::Study& study)
      : arguments_(arguments),
        manifest_(manifest),
        inputs_(input_files(study)),
        parts_(results::parts_folder(arguments.output)) {}

  std::variant<Beginning, FinishedAlready> begin() {
    results::remove_leftovers(arguments_.output);
    require_permission();
    // An existing file may be the finished sweep that is to be resumed, which is found by comparing it.
    const results::OutputPath place(arguments_.output, arguments_.force || arguments_.resume, inputs_);
    std::error_code error;
    const bool unlocked = arguments_.resume && !fs::exists(parts_, error);
    if (unlocked && fs::exists(place.file())) {
      if (is_this_sweep(place.file())) return FinishedAlready();
      refuse_other();
    }
    SegmentStore store = open_store();
    const bool may_replace = store.replaces_output();
    if (may_replace || !fs::exists(place.file())) {
      return Beginning{std::move(store), {arguments_.output, may_replace, inputs_}};
    }
    // The folder was left by a kill after the file was put in place, or another process has just finished the sweep.
    const bool finished = arguments_.resume && is_this_sweep(place.file());
    if (finished || store.is_new()) std::move(store).abandon();
    if (finished) return FinishedAlready();
    if (arguments_.resume) refuse_other();
    throw BadInput(arguments_.output.string() + ": exists; --force replaces it");
  }

 private:
  void require_permission() const {
    std::error_code error;
    if (arguments_.resume || arguments_.force || !fs::exists(parts_, error)) return;
    throw BadInput(parts_.string() +
                   ": holds an unfinished sweep; --resume continues it, --force starts again");
  }

  [[nodiscard]] bool is_this_sweep(const fs::path& file) const {
    const results::ResultReader reader(file);
    return reader.attribute("study_sha256") == study_sha256(manifest_.study) &&
           reader.layout() == manifest_.layout && reader.stored_rows() == manifest_.study.stored_rows;
  }

  [[noreturn]] void refuse_other() const {
    throw BadInput(arguments_.output.string() +
                   ": exists and holds another study, range or choice of rows; --force replaces it");
  }

  [[nodiscard]] SegmentStore open_store() const {
    if (arguments_.resume) {
      const auto damaged = arguments_.repair ? results::Damaged::recompute : results::Damaged::refuse;
      return SegmentStore::resume(parts_, manifest_, damaged);
    }
    if (arguments_.force) SegmentStore::discard(parts_);
    return SegmentStore::create(parts_, manifest_, arguments_.force);
  }

  const SweepArguments& arguments_;
  const results::Manifest& manifest_;
  const std::vector<fs::path> inputs_;
  const fs::path parts_;
};

/// The command that continues this sweep.
std::string resume_command(const CommonOptions& common) {
  std::vector<std::string> words = common.command_line;
  std::erase(words, "--force");
  std::erase(words, "--repair");
  if (std::ranges::find(words, "--resume") == words.end()) words.emplace_back("--resume");
  return shell_line(words);
}

/// After a failure: what can be continued, as lines for the user.
std::string what_is_left(const fs::path& output, std::uint64_t rows, const CommonOptions& common) {
  try {
    const results::ResultReader parts(results::parts_folder(output));
    return format_count(parts.point_count()) + " of " + format_count(rows) +
           " points are safe; continue with\n  " + resume_command(common) + "\n";
  } catch (const std::exception&) {
    return "none of its rows are left; start again with\n  " + shell_line(common.command_line) + "\n";
  }
}

void print_none(const sweep::SweepJob& job, const fs::path& output) {
  std::cout << "no point is feasible";
  if (!job.stored_rows().all())
    std::cout << ", so that store.rows leaves no row; the nearest misses are rows with --set store.rows=all";
  std::cout << "\n\n";
  print_near_misses(std::cout, near_misses(results::ResultReader(output)));
}

/// The stored rows as a clause: ", 1,000 rows: the 1,000 best by step_time_s"; empty where all points are rows.
std::string stored_clause(const sweep::SweepJob& job, const fs::path& output) {
  if (job.stored_rows().all()) return "";
  const std::uint64_t rows = results::ResultReader(output).row_count();
  return fmt::format(", {}: {}", counted(rows, "row"),
                     stored_rows_text(job.stored_rows(), job.study().objectives));
}

/// Prints the summary of a sweep. The best rows are shown, and executed, as `top` does.
void print_summary(const sweep::SweepJob& job, const results::Summary& summary,
                   const sweep::SweepOutcome& outcome, const RunCost& cost, const ShownTop& shown,
                   const fs::path& output) {
  const std::uint64_t evaluated = outcome.progress.rows_evaluated;
  std::cout << echo(job.study().title) << ": " << counted(job.layout().rows(), "point")
            << in_brackets(of_the_study(job.layout(), job.shards()));
  if (outcome.progress.rows_before > 0)
    std::cout << ", " << format_count(evaluated) << " of them in this run";
  std::cout << ", " << format_duration(cost.elapsed) << " (" << format_duration(cost.cpu) << " of CPU, "
            << format_count(static_cast<std::uint64_t>(static_cast<double>(evaluated) / cost.cpu))
            << " points per CPU second)\n";
  print_verdicts(std::cout, {.statuses = summary.statuses,
                             .reasons = summary.reasons,
                             .reason_names = job.columns().find("reason")->meanings,
                             .points = job.layout().rows(),
                             .examples = true});
  std::cout << '\n';
  if (summary.top.empty()) {
    print_none(job, output);
  } else {
    show_top(output, shown);
  }
  if (job.layout().selection.kind == results::SelectionKind::sample) {
    std::cout << "\na sample: what is typical of an axis can be seen in it; the best plan may be another\n";
  }
  std::cout << "\nresults in " << output.string() << " ("
            << format_bytes(static_cast<double>(fs::file_size(output))) << stored_clause(job, output)
            << "); see more with: " << shell_line({"shardscape", "top", output.string()}) << "\n";
}

void print_done(const results::Summary& summary, const sweep::SweepJob& job,
                const sweep::SweepOutcome& outcome, const RunCost& cost, const fs::path& output) {
  std::uint64_t feasible = 0;
  for (const auto& entry : summary.statuses) {
    if (static_cast<Status>(entry.code) == Status::ok) feasible = entry.count;
  }
  const nlohmann::ordered_json line = {
      {"event", "done"},
      {"points", job.layout().rows()},
      {"study_points", job.layout().selection.study_points},
      {"selection", name_of(job.layout().selection.kind)},
      {"feasible", feasible},
      {"elapsed_s", cost.elapsed},
      {"cpu_s", cost.cpu},
      {"points_per_cpu_s", static_cast<double>(outcome.progress.rows_evaluated) / cost.cpu},
      {"output", output.string()}};
  std::cout << json_text(line) << std::endl;
}

void print_stats(const sweep::SweepOutcome& outcome, const RunCost& cost) {
  TextTable table({left(""), ""});
  const bool several = cost.ranks > 1;
  if (several) table.add_row({"ranks", std::to_string(cost.ranks)});
  table.add_row({"elapsed", format_seconds(cost.elapsed)});
  table.add_row({"CPU", format_seconds(cost.cpu)});
  table.add_row(
      {fmt::format("evaluate (all {} threads)", cost.threads), format_seconds(outcome.times.evaluate)});
  table.add_row({"encode (all threads)", format_seconds(outcome.times.encode)});
  table.add_row(
      {several ? "write and seal (all ranks)" : "write and seal", format_seconds(outcome.times.write)});
  table.add_row({several ? "peak memory of a rank" : "peak memory", format_bytes(cost.peak_memory)});
  std::cerr << "statistics\n";
  table.print(std::cerr, 2);
}

int report_interrupted(const CommonOptions& common, const sweep::SweepOutcome& outcome, ProgressMode mode) {
  const std::string command = resume_command(common);
  const sweep::SweepProgress& progress = outcome.progress;
  if (mode == ProgressMode::json) {
    const nlohmann::ordered_json line = {{"event", "interrupted"},
                                         {"points", progress.rows_done()},
                                         {"total", progress.rows_total},
                                         {"resume", command}};
    std::cout << json_text(line) << std::endl;
  }
  std::cerr << "interrupted: " << format_count(progress.rows_done()) << " of "
            << format_count(progress.rows_total) << " points are safe; continue with\n  " << command << "\n";
  return kInterrupted;
}

/// Checks that the shard has rows: there may be more shards than blocks.
void require_rows(const sweep::SweepJob& job, const SweepArguments& arguments) {
  require_points(job);
  if (job.layout().rows() == 0) {
    throw BadInput(fmt::format(
        "--shard: part {} of the study holds no points; it has {} to share out", arguments.shard,
        counted(
            results::BlockLayout::whole(job.layout().total_points, job.layout().rows_per_block).blocks.count,
            "block")));
  }
}

/// Checks that a table is printed in which executed times can be shown; --progress json ends with a line for programs
/// instead.
void require_table(ProgressMode mode, const SweepArguments& arguments) {
  if (mode == ProgressMode::json && arguments.confirm.value_or(0) > 0)
    throw BadInput(
        fmt::format("--confirm: --progress json prints no table of the best; execute them with "
                    "'shardscape top {} --confirm {} --format json'",
                    arguments.output.string(), *arguments.confirm));
}

/// What a process gets from its command line. Everything that can be wrong is checked before anything is written.
struct WantedSweep {
  WantedSweep(const SweepArguments& arguments, const CommonOptions& common, const ranks::Ranks& ranks)
      : shard(parse_shard(arguments.shard)),
        mode(parse_choice<ProgressMode>("--progress", arguments.progress)),
        study(load(arguments.study, common, ranks.rank() != 0)),
        job(study, arguments.limit, shard, sample_of(arguments)),
        threads(arguments.threads > 0 ? arguments.threads : default_threads(ranks)),
        manifest(job.manifest(run_info(common, threads))) {
    require_rows(job, arguments);
    require_table(mode, arguments);
  }
  WantedSweep(const WantedSweep&) = delete;
  WantedSweep& operator=(const WantedSweep&) = delete;

  static std::optional<sweep::Sample> sample_of(const SweepArguments& arguments) {
    if (!arguments.sample) return std::nullopt;
    return sweep::Sample{*arguments.sample, arguments.sample_seed};
  }
  [[nodiscard]] sweep::SweepOptions options(const CommonOptions& common, const InterruptGuard& guard) const {
    sweep::SweepOptions options;
    options.threads = threads;
    options.evaluator = sweep::simulator_factory({.reference = common.reference, .mode = study.mode});
    options.stop = &guard.stop();
    options.seal.least_age = std::chrono::milliseconds(500);
    return options;
  }

  sweep::Shard shard;
  ProgressMode mode;
  sweep::Study study;
  sweep::SweepJob job;
  int threads;
  results::Manifest manifest;
};

/// The sweep of this process, once all ranks agree; null where rank 0 is about to end it, because it or another rank
/// cannot begin. What is wrong is an exception on rank 0, and the manifest has the threads of all ranks.
std::unique_ptr<WantedSweep> agree(const SweepArguments& arguments, const CommonOptions& common,
                                   ranks::Ranks& ranks) {
  std::unique_ptr<WantedSweep> wanted;
  RankView view;
  const std::exception_ptr failure = note_failure(view, [&] {
    wanted = std::make_unique<WantedSweep>(arguments, common, ranks);
    view.facts = facts_of(wanted->manifest, arguments.output.string(), common.reference);
    view.threads = wanted->threads;
  });
  const std::vector<RankView> views = agree_on(view, failure, ranks);
  if (ranks.rank() != 0) return wanted;
  wanted->manifest.run.threads = 0;
  for (const RankView& one : views) wanted->manifest.run.threads += one.threads;
  return wanted;
}

void say_what_was_found(const SegmentStore& store) {
  for (const std::string& name : store.removed()) std::cerr << name << ": was damaged; computing it again\n";
  for (const std::string& line : store.unfinished()) std::cerr << message_line(line) << '\n';
}

/// Rank 0's part, which begins and ends the sweep; a process that runs alone is rank 0.
int lead(const SweepArguments& arguments, const CommonOptions& common, ranks::Ranks& ranks) {
  Word word(ranks);
  const std::unique_ptr<WantedSweep> wanted = agree(arguments, common, ranks);
  const sweep::SweepJob& job = wanted->job;
  auto begun = SweepOutput(arguments, wanted->manifest, wanted->study).begin();
  if (std::holds_alternative<FinishedAlready>(begun)) {
    std::cerr << arguments.output.string() << ": is complete already; see it with: "
              << shell_line({"shardscape", "top", arguments.output.string()}) << '\n';
    return kDone;
  }
  auto beginning = std::get<Beginning>(std::move(begun));
  say_what_was_found(beginning.store);
  const sweep::SharedStart start{beginning.store.missing(), beginning.store.sealed_rows(), {}, {}};
  const InterruptGuard interrupt(
      {"finishing what is in flight; once more to leave at once (sealed rows, or the whole file, are safe)",
       "continue with\n  " + resume_command(common)},
      common.stop);
  ProgressReporter reporter(job, wanted->mode);
  sweep::SweepOptions options = wanted->options(common, interrupt);
  options.observer = [&](const sweep::SweepProgress& progress) { reporter.update(progress); };
  Together together;
  std::optional<results::Summary> summary;
  try {
    word.begin(fs::absolute(beginning.store.folder()), start);
    together = compute_together(job, beginning.store, options, start, ranks);
    together.cost.threads = wanted->manifest.run.threads;
    reporter.close();
    summary = assemble(together, std::move(beginning.store), beginning.output, wanted->manifest.run);
    together.cost.elapsed = reporter.elapsed_seconds();
  } catch (const ranks::RankLost& lost) {
    reporter.close();
    throw RankFailure(lost.what(), what_is_left(arguments.output, job.layout().rows(), common));
  } catch (const std::exception& failure) {
    reporter.close();
    throw Failure(failure.what(), what_is_left(arguments.output, job.layout().rows(), common));
  }
  if (!summary) return report_interrupted(common, together.outcome, wanted->mode);

  const bool confirms = wanted->mode != ProgressMode::json && arguments.confirm > 0;
  if (wanted->mode == ProgressMode::json) {
    print_done(*summary, job, together.outcome, together.cost, arguments.output);
  } else {
    print_summary(job, *summary, together.outcome, together.cost,
                  {.count = kShownRows,
                   .confirm = arguments.confirm,
                   .why_stop = [&] { return interrupt.stop() ? kStopped : nullptr; }},
                  arguments.output);
  }
  if (arguments.stats) print_stats(together.outcome, together.cost);
  return confirms && interrupt.stop() ? kInterrupted : kDone;  // without that, nothing was left undone
}

/// The part of any other rank: seals segments in rank 0's folder, and prints nothing.
void follow(const SweepArguments& arguments, const CommonOptions& common, ranks::Ranks& ranks) {
  const std::unique_ptr<WantedSweep> wanted = agree(arguments, common, ranks);
  const Heard heard = hear(ranks);
  if (!heard.begin) return;
  const InterruptGuard interrupt({}, common.stop);
  follow_together(wanted->job, wanted->manifest, wanted->options(common, interrupt), heard, ranks);
}

int run_sweep_command(const SweepArguments& arguments, const CommonOptions& common) {
  const std::unique_ptr<ranks::Ranks> ranks = join_ranks(common, arguments.shard != SweepArguments().shard);
  return run_together(
      *ranks, [&] { return lead(arguments, common, *ranks); }, [&] { follow(arguments, common, *ranks); });
}

}  // namespace

void require_points(const sweep::SweepJob& job) {
  if (job.space().size() > 0) return;
  const std::string& problem = job.space().problem();
  throw BadInput(job.study().at("space") +
                 (problem.empty() ? fmt::format("no tp * cp * pp * dp of these axes makes {} GPUs; "
                                                "'data_parallel: fill' takes what the others leave",
                                                job.study().gpus)
                                  : problem));
}

void add_sweep_command(const Program& program) {
  const auto [command, arguments] = program.add("sweep", "Evaluate every point of a study into one HDF5 file",
                                                kSweepFooter, run_sweep_command);
  add_study_arguments(*command, arguments->study);
  add_value(*command, "-o,--output", arguments->output, "OUT.h5", "The result file to write")->required();
  CLI::Option* const resume =
      command->add_flag("--resume", arguments->resume, "Continue an interrupted sweep of the same study");
  command
      ->add_flag("--repair", arguments->repair,
                 "With --resume: compute segments again that are damaged, instead of naming them")
      ->needs(resume);
  add_force(*command, arguments->force)->excludes(resume);
  add_value(*command, "--threads", arguments->threads, "N",
            "Worker threads (default: all); the results are the same for any number")
      ->check(whole_number(1, 4096));
  CLI::Option* const limit =
      command->add_option("--limit", arguments->limit, "The first N points only; no sample of the study");
  limit->type_name("N")->check(whole_number(1));
  CLI::Option* const sampled = command->add_option(
      "--sample", arguments->sample,
      "One point, drawn at random, of each of N equal parts of the study: a sample of all its axes");
  sampled->type_name("N")->check(whole_number(1))->excludes(limit);
  add_value(*command, "--sample-seed", arguments->sample_seed, "SEED", "Another sample (default 0)")
      ->needs(sampled);
  add_value(*command, "--shard", arguments->shard, "I/N", "Part I of N of the points, I from 1 to N");
  add_progress(*command, arguments->progress);
  add_confirm(*command, arguments->confirm);
  command->add_flag("--stats", arguments->stats, "Say where time and memory went");
}

}  // namespace shardscape::cli
