// What the subcommands share: exit codes, how they fail, where presets are, how a study is loaded.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results_schema/manifest.h"
#include "results_schema/reader.h"
#include "sweep/study/study.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::sweep {
class SweepJob;
}  // namespace shardscape::sweep

namespace shardscape::cli {

enum ExitCode : int { kDone = 0, kEnvironment = 1, kBadInput = 2, kInaccurate = 3, kInterrupted = 130 };

/// The input is wrong. Each problem reads "where: what, and what would be right" and may repeat what somebody
/// wrote as it is: print_problems() makes a line of it.
class BadInput : public std::runtime_error {
 public:
  explicit BadInput(std::string problem) : BadInput(std::vector{std::move(problem)}) {}
  /// `further`: problems that were only counted.
  explicit BadInput(std::vector<std::string> problems, std::size_t further = 0)
      : std::runtime_error(problems.empty() ? "" : problems.front()),
        problems_(std::move(problems)),
        further_(further) {}
  explicit BadInput(const yaml::Diagnostics& diagnostics);
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  [[nodiscard]] std::size_t further() const { return further_; }

 private:
  std::vector<std::string> problems_;
  std::size_t further_;
};

/// Problems of several sources, for one BadInput.
class ProblemList {
 public:
  void add(std::string problem) { problems_.push_back(std::move(problem)); }
  /// Adds problems of files. A problem that has no place in a file, because it is about something that the
  /// command line gave, is said to be one of `option`.
  void add(const yaml::Diagnostics& diagnostics, std::string_view option = {});
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  /// Throws BadInput where there is a problem.
  void finish() const {
    if (!empty()) throw BadInput(problems_, further_);
  }

 private:
  std::vector<std::string> problems_;
  std::size_t further_ = 0;
};

/// The disk, a file system or a library failed, and there is something to do about it.
class Failure : public std::runtime_error {
 public:
  Failure(const std::string& what, std::string advice)
      : std::runtime_error(what), advice_(std::move(advice)) {}
  /// Lines of the program's own, to be shown as they are.
  [[nodiscard]] const std::string& advice() const { return advice_; }

 private:
  std::string advice_;
};

/// A line for each, with what can't be shown escaped and long repetitions cut (message_line()). `further`:
/// problems that were only counted.
void print_problems(std::ostream& out, std::span<const std::string> problems, std::size_t further = 0);
/// "1 problem", "3 problems".
std::string count_problems(std::size_t count);
/// The lines of a text, without their ends.
std::vector<std::string> split_lines(std::string_view text);

/// What every subcommand takes.
struct CommonOptions {
  std::vector<std::filesystem::path> presets;  ///< in the order given; they come before the built-in ones
  bool reference = false;
  std::vector<std::string> command_line;  ///< argv
};

/// Runs once the whole command line is parsed; returns the exit code. Failures are exceptions: BadInput for
/// exit code 2, anything else derived from std::exception for 1.
using Action = std::function<int()>;
/// Makes `run` the action of the program where `command` is the one chosen.
template <class Run>
void run_when_chosen(CLI::App& command, Action& action, Run run) {
  command.callback([&action, run] { action = run; });
}

/// Each adds its subcommand to `app` and, where that is chosen, sets `action`. The options outlive the run.
void add_sweep_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_search_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_check_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_simulate_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_top_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_sensitivity_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_export_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_gemm_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_attention_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_experts_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_collective_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_network_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_replay_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_validate_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_calibrate_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_presets_command(CLI::App& app, const CommonOptions& common, Action& action);

/// User preset directories first, then the ones that came with the program (of the source tree it was built
/// from, or beside the installed binary).
yaml::Catalog make_catalog(const CommonOptions& common);

/// The published figures that came with the program (see validate/published.h); nothing where they are gone.
std::optional<std::filesystem::path> published_folder();

/// A study as the command line names it.
struct StudyArguments {
  std::filesystem::path file;
  std::vector<std::string> overrides;  ///< KEY=VALUE
};
/// Adds STUDY and --set.
void add_study_arguments(CLI::App& command, StudyArguments& arguments);
/// BadInput with every problem of the study. Says on stderr what the study leaves out, unless `quiet`.
sweep::Study load(const StudyArguments& arguments, const CommonOptions& common, bool quiet = false);

/// Every file that went into the study.
std::vector<std::filesystem::path> input_files(const sweep::Study& study);

/// BadInput where a study has no points at all.
void require_points(const sweep::SweepJob& job, const std::filesystem::path& study);

/// Adds --force, with which outputs are replaced.
CLI::Option* add_force(CLI::App& command, bool& force);

/// Opens OUT.h5, or the OUT.h5.parts of a sweep that is not finished; clears away what a sweep that was
/// killed in its last moment left beside it.
results::ResultReader open_results(const std::filesystem::path& file);

/// What `top` prints of a result file: the best rows by its first objective, or the front over columns.
struct ShownTop {
  std::optional<std::uint64_t> count = {};
  bool count_points = false;  ///< and not rows of the table, in which points that tie are one
  std::string pareto = {}, format = "table";
  std::optional<std::size_t> confirm =
      {};  ///< rows to be executed; nothing: as `top` does without being asked
  const std::atomic<bool>* stop = nullptr;  ///< of executions
};
int show_top(const std::filesystem::path& file, const ShownTop& shown);
/// Adds --confirm.
CLI::Option* add_confirm(CLI::App& command, std::optional<std::size_t>& rows);

/// Names of the columns that can be objectives in some phase.
std::vector<std::string> objective_columns();

/// The workload's keys that the study lists several values of, each with its value here.
std::vector<std::pair<std::string, std::string>> listed_settings(const sweep::Study& study,
                                                                 std::size_t workload);

/// What tells a setting from the others of its study: "device.hbm.bandwidth=8 TB/s, global_batch=256"; empty
/// where there is one only.
std::string describe_setting(const sweep::Study& study, std::uint64_t setting);

/// The words as one line that a POSIX shell reads back as the same words.
std::string shell_line(const std::vector<std::string>& words);

/// "0.1.0".
std::string_view version();
/// Who computes: program, compiler, host, time, command line.
results::RunInfo run_info(const CommonOptions& common, int threads);

}  // namespace shardscape::cli
