// What the subcommands share: exit codes, how they fail, where presets are, how a study is loaded.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "results_schema/manifest.h"
#include "results_schema/reader.h"
#include "sweep/study/study.h"
#include "sweep/yaml/catalog.h"

namespace shardscape::program {

enum ExitCode : int { kDone = 0, kEnvironment = 1, kBadInput = 2, kInaccurate = 3, kInterrupted = 130 };

/// The input is wrong. what() holds one line per problem, each "where: what, and what would be right".
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What every subcommand takes.
struct CommonOptions {
  std::vector<std::filesystem::path> presets;  ///< in the order given; they come before the built-in ones
  bool reference = false;
  std::vector<std::string> command_line;  ///< argv
};

/// Runs once the whole command line is parsed; returns the exit code. Failures are exceptions: BadInput for
/// exit code 2, anything else derived from std::exception for 1.
using Action = std::function<int()>;

/// Each adds its subcommand to `app` and, where that is chosen, sets `action`. The options outlive the run.
void add_sweep_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_check_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_simulate_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_top_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_sensitivity_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_export_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_gemm_command(CLI::App& app, const CommonOptions& common, Action& action);
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
/// BadInput with every problem of the study.
sweep::Study load(const StudyArguments& arguments, const CommonOptions& common);

/// Every file that went into the study.
std::vector<std::filesystem::path> input_files(const sweep::Study& study);

/// Adds --force, with which outputs are replaced.
CLI::Option* add_force(CLI::App& command, bool& force);

/// Opens OUT.h5, or the OUT.h5.parts of a sweep that is not finished; clears away what a sweep that was
/// killed in its last moment left beside it.
results::ResultReader open_results(const std::filesystem::path& file);

/// Names of the columns that can be objectives in some phase.
std::vector<std::string> objective_columns();

/// What tells a setting from the others of its study: "device.hbm.bandwidth=8 TB/s, global_batch=256"; empty
/// where there is one only.
std::string describe_setting(const sweep::Study& study, std::uint64_t setting);

/// The words as one line that a POSIX shell reads back as the same words.
std::string shell_line(const std::vector<std::string>& words);

/// "0.1.0".
std::string_view version();
/// Who computes: program, compiler, host, time, command line.
results::RunInfo run_info(const CommonOptions& common, int threads);

}  // namespace shardscape::program
