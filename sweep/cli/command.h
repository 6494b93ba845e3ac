// What commands share: how they are added, their common options, failures, presets, and loading of studies.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/reading/reader.h"
#include "sweep/cli/terminal/exit_code.h"
#include "sweep/study/study.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::sweep {
class SweepJob;
}  // namespace shardscape::sweep

namespace shardscape::cli {

/// Thrown where the input is wrong. Each problem reads "where: what, and what would be right" and may contain what
/// somebody wrote unchanged; print_problems() makes a line of it.
class BadInput : public std::runtime_error {
 public:
  explicit BadInput(std::string problem) : BadInput(std::vector{std::move(problem)}) {}
  /// `further`: number of problems that were only counted.
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

/// Collects problems of several sources for one BadInput.
class ProblemList {
 public:
  void add(std::string problem) { problems_.push_back(std::move(problem)); }
  /// Adds problems of files. A problem without a place in a file, which is about something from the command line, is
  /// attributed to `option`.
  void add(const yaml::Diagnostics& diagnostics, std::string_view option = {});
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  /// Throws BadInput if there are problems.
  void finish() const {
    if (!empty()) throw BadInput(problems_, further_);
  }

 private:
  std::vector<std::string> problems_;
  std::size_t further_ = 0;
};

/// Thrown where the disk, a file system or a library failed and the user can do something about it.
class Failure : public std::runtime_error {
 public:
  Failure(const std::string& what, std::string advice)
      : std::runtime_error(what), advice_(std::move(advice)) {}
  /// The program's advice, as lines that are shown unchanged.
  [[nodiscard]] const std::string& advice() const { return advice_; }

 private:
  std::string advice_;
};

/// Prints a line for each problem, with characters that cannot be shown escaped and long repetitions cut
/// (message_line()). `further`: number of problems that were only counted.
void print_problems(std::ostream& out, std::span<const std::string> problems, std::size_t further = 0);
/// The value that an option names, one of an enum's. BadInput where there is none.
template <class E>
E parse_choice(const char* option, const std::string& text) {
  if (const auto value = parse_enum<E>(text)) return *value;
  const auto names = enum_names<E>();
  throw BadInput(std::string(option) + ": '" + text + "' is not one of " + join_names(names) +
                 did_you_mean(text, names));
}
/// The number in front of a unit, such as 12.5 for "12.5%"; nothing for other texts.
std::optional<double> number_before(std::string_view text, std::string_view unit);
/// The limits of a search.
struct Budget {
  double cpu_seconds = HUGE_VAL;
  double points = HUGE_VAL;
};
/// Of "500ms", "10s", "5min" and, with `points`, "20000 points"; no limit where the text is empty.
Budget parse_budget(const std::string& text, bool points = true);
/// The parts of a text between commas.
std::vector<std::string> split_names(std::string_view text);

/// A study that is given in place of the file that the command line names.
struct GivenStudy {
  std::filesystem::path file;  ///< stands for it in messages; relative paths start at its folder
  std::string text;
  std::vector<std::string> overrides;  ///< as --set
  /// What was read from them; nothing where they have not been read yet.
  std::optional<sweep::Study> study = {};
};

/// Options that every subcommand takes.
struct CommonOptions {
  /// In the order given; they take precedence over the built-in ones.
  std::vector<std::filesystem::path> presets;
  bool reference = false;
  std::vector<std::string> command_line;  ///< the words of argv
  const GivenStudy* given = nullptr;
  /// Where the command runs inside another program: asks it to stop, in place of signals.
  const std::atomic<bool>* stop = nullptr;
};

/// Runs a command after the whole command line has been parsed; returns the exit code. Failures are exceptions:
/// BadInput gives exit code 2, any other std::exception 1.
using Action = std::function<int()>;

/// The program that commands are added to. All must outlive the run.
struct Program {
  CLI::App& app;
  const CommonOptions& common;
  Action& action;  ///< set to what the chosen command runs

  /// A subcommand, and what its options are to be written into; `run` gets that if the command is chosen.
  template <class Arguments>
  struct Added {
    CLI::App* command;
    std::shared_ptr<Arguments> arguments;
  };
  template <class Arguments>
  Added<Arguments> add(const char* name, const char* what, const std::string& footer,
                       int (*run)(const Arguments&, const CommonOptions&)) const {
    Added<Arguments> added{app.add_subcommand(name, what), std::make_shared<Arguments>()};
    added.command->footer(footer);
    added.command->callback([action = &action, common = &common, arguments = added.arguments, run] {
      *action = [=] { return run(*arguments, *common); };
    });
    return added;
  }
};

/// Each adds its subcommand, with its options.
using AddCommand = void(const Program& program);
AddCommand add_sweep_command, add_search_command, add_check_command, add_simulate_command, add_top_command,
    add_sensitivity_command, add_report_command, add_explore_command, add_export_command, add_merge_command,
    add_verify_command, add_diff_command, add_gemm_command, add_attention_command, add_experts_command,
    add_collective_command, add_network_command, add_replay_command, add_validate_command,
    add_calibrate_command, add_presets_command, add_capacity_command, add_launch_command, add_compare_command,
    add_new_command, add_guide_commands;

/// The user's preset directories first, then those that came with the program (in the source tree it was built from, or
/// beside the installed binary).
yaml::Catalog make_catalog(const CommonOptions& common);

/// The folder of the documents that came with the program; nothing where they are missing.
std::optional<std::filesystem::path> documents_folder();

/// The published figures that came with the program (see validate/published.h); nothing where they are missing.
std::optional<std::filesystem::path> published_folder();

/// Whether the name of a file is one of results rather than of a study.
bool is_results(const std::filesystem::path& file);

/// A study as given on the command line: a file, or, where `results_too`, the result file of a sweep of it.
struct StudyArguments {
  std::filesystem::path file;
  std::vector<std::string> overrides;                                ///< texts KEY=VALUE
  bool all_counts = false, rates_instead = false, one_plan = false;  ///< as in sweep::StudyOptions
  bool results_too = false;
};
/// The file, or where there is none the study of that name which comes with the program: "llama3.1-70b-64xa100", also
/// with ".yaml", or its path in the project's folder, as examples have it.
std::filesystem::path study_file(const std::filesystem::path& file);
/// The names of the studies that come with the program, sorted.
std::vector<std::string> ready_studies();
/// Adds the arguments STUDY and --set to a command.
void add_study_arguments(CLI::App& command, StudyArguments& arguments);
/// Loads a study; BadInput with all of its problems. Unless `quiet`, prints on stderr what the study leaves out.
sweep::Study load(const StudyArguments& arguments, const CommonOptions& common, bool quiet = false);

/// The words that name the study again on another command line, with what changes it and the presets.
std::vector<std::string> words_of(const StudyArguments& arguments, const CommonOptions& common);

/// All files that the study was read from.
std::vector<std::filesystem::path> input_files(const sweep::Study& study);

/// BadInput where the study has no points.
void require_points(const sweep::SweepJob& job);

/// Adds an option with a value of the type that help shows; repeated, it takes one value each time.
template <class Target>
CLI::Option* add_value(CLI::App& command, const char* name, Target& target, const char* type,
                       const std::string& what) {
  return command.add_option(name, target, what)->type_name(type)->allow_extra_args(false);
}
/// Adds the argument RESULTS: a result file, or the folder of an unfinished one.
void add_results(CLI::App& command, std::filesystem::path& file);
/// Adds --template, which prints a table of measurements to begin with; `chosen` is empty where it is not given.
void add_template(CLI::App& command, std::string& chosen);
/// The columns of every kind of table, with what they mean.
std::string tables_topic();
/// Prints the template of that name on stdout, and what its columns mean on stderr.
void print_template(const std::string& name);
/// Adds --json.
void add_json(CLI::App& command, bool& json);
/// Adds --progress, a ProgressMode.
void add_progress(CLI::App& command, std::string& mode);
/// Adds --force, which allows outputs to be replaced.
CLI::Option* add_force(CLI::App& command, bool& force);

/// Before OUT.h5, or the OUT.h5.parts of an unfinished sweep, is read: removes what a sweep that was killed at its very
/// end left beside it. BadInput where the file is a study.
void prepare_results(const std::filesystem::path& file);
/// Prepares such a file and opens it.
results::ResultReader open_results(const std::filesystem::path& file);

/// What a file's results rest on beyond its inputs, a line each; nothing in files of older programs.
std::optional<std::string> assumptions_of(const results::ResultReader& reader);
/// Study::sheet_devices of the study that was swept, which the resolved one does not tell.
std::set<std::string> sheet_devices(const results::ResultReader& reader);

/// What `top` shows of a result file: the best rows by its first objective, or the front over columns.
struct ShownTop {
  std::optional<std::uint64_t> count = {};
  /// `count` is of points and not of rows of the table, where tying points share a row: no further points are known to
  /// belong there.
  bool count_points = false;
  std::string pareto = {}, format = "table";
  std::optional<std::size_t> confirm = {};  ///< rows to execute; nothing: as many as `top` executes unasked
  std::function<const char*()> why_stop = {};  ///< as in ConfirmWish
};
int show_top(const std::filesystem::path& file, const ShownTop& shown);
/// Adds --confirm to a command.
CLI::Option* add_confirm(CLI::App& command, std::optional<std::size_t>& rows);

/// Names of the columns that can be objectives in either phase.
std::vector<std::string> objective_columns();

/// The workload's keys for which the study lists several values, each with its value in this workload.
std::vector<std::pair<std::string, std::string>> listed_settings(const sweep::Study& study,
                                                                 std::size_t workload);

/// What distinguishes a setting from the others of its study: "device.hbm.bandwidth=8 TB/s, global_batch=256"; empty
/// where there is only one setting.
std::string describe_setting(const sweep::Study& study, std::uint64_t setting);

/// A line that a POSIX shell reads as these words.
std::string shell_line(const std::vector<std::string>& words);
/// The words of such a line.
std::vector<std::string> shell_words(std::string_view line);

/// Turns "--set A=1 B=2" into "--set A=1 --set B=2": a list ends at a word that is not KEY=VALUE, so that STUDY may
/// follow.
std::vector<std::string> expand_lists(const std::vector<std::string>& words);

/// The version, such as "0.1.0".
std::string_view version();
/// Data of this run for the result file: program, compiler, host, time, command line.
results::RunInfo run_info(const CommonOptions& common, int threads);

}  // namespace shardscape::cli
