// shardscape: the program. Parses the command line, runs one subcommand, turns failures into messages and
// exit codes.
#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/suggest.h"
#include "results_schema/output_file.h"
#include "sweep/program/program.h"
#include "sweep/program/result_commands.h"

namespace shardscape::program {

namespace {

constexpr const char* kMainFooter =
    "Examples:\n"
    "  shardscape check sweep/studies/llama3.1-70b-64xa100.yaml\n"
    "  shardscape sweep sweep/studies/llama3.1-70b-64xa100.yaml -o out.h5\n"
    "  shardscape top out.h5 -n 10 --breakdown\n"
    "  shardscape simulate sweep/studies/llama3.1-70b-64xa100.yaml --point tp=8,pp=4,dp=2\n"
    "  shardscape gemm 4096 12288 12288 --device a100-sxm-80gb\n"
    "\n"
    "Exit codes: 0 done, 1 environment (disk, files), 2 bad input, 3 accuracy outside tolerance, 130 "
    "interrupted "
    "and resumable.\n"
    "'shardscape COMMAND --help' says more about a command.";

int fail(const std::string& message, const std::string& summary, int code) {
  std::cerr << message;
  if (!message.empty() && message.back() != '\n') std::cerr << '\n';
  std::cerr << "shardscape: " << summary << '\n';
  return code;
}

/// "shardscape swep": the command that was meant.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1].starts_with("-")) return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  if (std::ranges::find(names, words[1]) != names.end()) return "";
  return "unknown command '" + words[1] + "'" + did_you_mean(words[1], names) +
         "; commands: " + join_names(names);
}

/// "--set A=1 B=2" means "--set A=1 --set B=2": a list ends where something is no KEY=VALUE, so that STUDY
/// may follow.
std::vector<std::string> expand_lists(const std::vector<std::string>& words) {
  std::vector<std::string> expanded;
  std::string list;  // the list option we are in
  bool first = false;
  for (const std::string& word : words) {
    const bool assignment =
        !word.starts_with("-") && word.find('=') != std::string::npos && word.find('/') > word.find('=');
    if (!first && !assignment) list.clear();
    if (!first && !list.empty()) expanded.push_back(list);
    expanded.push_back(word);
    first = word == "--set" || word == "--fault";
    if (first) list = word;
  }
  return expanded;
}

int parse_failure(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
  if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);  // --help, --version
  const std::string command = unknown_command(app, words);
  return fail(command.empty() ? "command line: " + std::string(error.what()) : "command line: " + command,
              "see 'shardscape --help'", kBadInput);
}

int refuse(const std::string& text) {
  const auto lines = std::max<std::ptrdiff_t>(1, std::ranges::count(text, '\n'));
  const std::string count = lines == 1 ? "1 problem" : std::to_string(lines) + " problems";
  return fail(text, count + "; nothing was written or changed", kBadInput);
}

int run_action(const Action& action) {
  try {
    const int code = action();
    std::cout.flush();
    if (!std::cout) return fail("standard output: can't be written", "stopped", kEnvironment);
    return code;
  } catch (const BadInput& problem) {
    return refuse(problem.what());
  } catch (const results::OutputRefused& problem) {
    return refuse(problem.what());
  } catch (const std::exception& failure) {
    return fail(failure.what(), "stopped", kEnvironment);
  }
}

int run(int argc, char** argv) {
  CommonOptions common;
  common.command_line.assign(argv, argv + argc);
  Action action;
  CLI::App app("Shardscape explores how to shard a large language model over a GPU cluster.", "shardscape");
  app.set_version_flag("--version", "shardscape " + std::string(version()));
  app.require_subcommand(1);
  app.footer(kMainFooter);
  add_sweep_command(app, common, action);
  add_check_command(app, common, action);
  add_simulate_command(app, common, action);
  add_top_command(app, common, action);
  add_sensitivity_command(app, common, action);
  add_report_command(app, common, action);
  add_export_command(app, common, action);
  add_merge_command(app, common, action);
  add_verify_command(app, common, action);
  add_diff_command(app, common, action);
  add_gemm_command(app, common, action);
  add_network_command(app, common, action);
  add_replay_command(app, common, action);
  add_validate_command(app, common, action);
  add_calibrate_command(app, common, action);
  add_presets_command(app, common, action);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command
        ->add_option(
            "--presets", common.presets,
            "A directory with models/ and hw_presets/, searched before the built-in ones; repeatable")
        ->type_name("DIR")
        ->allow_extra_args(false)
        ->check(CLI::ExistingDirectory);
    command->add_flag("--reference", common.reference,
                      "The plain path: no memo, no fast path, no shortcut; same results, slowly");
  }
  try {
    std::vector<std::string> words = expand_lists({argv + 1, argv + argc});
    std::ranges::reverse(words);  // as CLI11 wants them
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return parse_failure(app, error, common.command_line);
  }
  return run_action(action);
}

}  // namespace

}  // namespace shardscape::program

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is then an error of write(), as a full disk is
  return shardscape::program::run(argc, argv);
}
