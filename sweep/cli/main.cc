// shardscape: the program. Parses the command line, runs one subcommand, and turns failures into messages and exit
// codes.
#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results_schema/disk/output_file.h"
#include "sweep/cli/command.h"
#include "sweep/cli/terminal/failure_text.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/terminal.h"
#include "sweep/cli/terminal/usage.h"

namespace shardscape::cli {

namespace {

constexpr const char* kMainFooter =
    R"(Examples:
  shardscape new --model llama3.1-70b --cluster dgx-h100 --gpus 64 --phase training
  shardscape check sweep/studies/llama3.1-70b-64xa100.yaml
  shardscape sweep sweep/studies/llama3.1-70b-64xa100.yaml -o out.h5
  shardscape top out.h5 -n 10 --breakdown
  shardscape simulate sweep/studies/llama3.1-70b-64xa100.yaml --point tp=8,pp=4,dp=2
  shardscape gemm 4096 12288 12288 --device a100-sxm-80gb

Exit codes: 0 done, 1 environment (disk, files), 2 bad input, 3 accuracy outside tolerance, 130 interrupted.
'shardscape COMMAND --help' says more about a command, 'shardscape help TOPIC' about studies, devices, models, ...)";

int fail(const std::vector<std::string>& problems, const std::string& summary, int code,
         std::size_t further = 0) {
  print_problems(std::cerr, problems, further);
  std::cerr << styled(std::cerr, "shardscape: " + summary, "31") << '\n';
  return code;
}

/// Turns "--set A=1 B=2" into "--set A=1 --set B=2": a list ends at a word that is not KEY=VALUE, so that STUDY may
/// follow.
std::vector<std::string> expand_lists(const std::vector<std::string>& words) {
  std::vector<std::string> expanded;
  std::string list;  // the list option being expanded
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
  if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);  // --help or --version
  const UsageProblem problem = usage_problem(app, error, words);
  return fail(problem.lines, "see '" + problem.help + "'", kBadInput);
}

int refuse(const std::vector<std::string>& problems, std::size_t further = 0) {
  const std::string count = counted(problems.size() + further, "problem");
  return fail(problems, count + "; nothing was written or changed", kBadInput, further);
}

/// The commands that predict many plans or messages, with memos and shortcuts that --reference leaves out.
constexpr std::array<std::string_view, 8> kTakingReference = {"capacity", "sweep",    "search",    "check",
                                                              "simulate", "validate", "calibrate", "network"};

bool takes_reference(std::string_view command) {
  return std::ranges::find(kTakingReference, command) != kTakingReference.end();
}

int run_action(const Action& action) {
  try {
    const int code = action();
    std::cout.flush();
    if (!std::cout) return fail({"standard output: can't be written"}, "stopped", kEnvironment);
    return code;
  } catch (const BadInput& bad) {
    return refuse(bad.problems(), bad.further());
  } catch (const results::OutputRefused& refused) {
    return refuse({refused.what()});
  } catch (const Failure& failure) {
    print_problems(std::cerr, std::vector<std::string>{failure.what()});
    std::cerr << failure.advice();
    return fail({}, "stopped", kEnvironment);
  } catch (const std::filesystem::filesystem_error& failure) {
    return fail({failure.path1().string() + ": " + failure.code().message()}, "stopped", kEnvironment);
  } catch (const std::exception& failure) {
    return fail({failure_text(failure)}, "stopped", kEnvironment);
  }
}

/// Keeps memory that is freed. Tables and files of megabytes come and go while a sweep runs: left to itself the C
/// library gives them back to the system, which clears every page of the next one again.
void keep_memory() {
#ifdef __GLIBC__
  constexpr int kMebibyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMebibyte);  // more is refused
  mallopt(M_TRIM_THRESHOLD, 1024 * kMebibyte);
  mallopt(M_TOP_PAD, 64 * kMebibyte);
#endif
}

int run(int argc, char** argv) {
  CommonOptions common;
  common.command_line.assign(argv, argv + argc);
  Action action;
  CLI::App app("Shardscape explores how to shard a large language model over a GPU cluster.", "shardscape");
  app.set_version_flag("--version", fmt::format("shardscape {}", version()));
  app.require_subcommand(1);
  app.formatter(help_formatter());
  app.footer(kMainFooter);
  const Program program{app, common, action};
  for (AddCommand* const add :
       {add_new_command,        add_sweep_command,       add_check_command,     add_simulate_command,
        add_top_command,        add_sensitivity_command, add_report_command,    add_export_command,
        add_merge_command,      add_verify_command,      add_diff_command,      add_search_command,
        add_capacity_command,   add_gemm_command,        add_attention_command, add_experts_command,
        add_collective_command, add_network_command,     add_replay_command,    add_validate_command,
        add_calibrate_command,  add_presets_command,     add_guide_commands})
    add(program);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() > 0) option->check(not_empty());
    }
    command
        ->add_option(
            "--presets", common.presets,
            "A directory with models/ and hw_presets/, searched before the built-in ones; repeatable")
        ->type_name("DIR")
        ->allow_extra_args(false)
        ->check(not_empty())
        ->check(CLI::Validator(CLI::ExistingDirectory).description(""));
    CLI::Option* const reference =
        command->add_flag("--reference", common.reference,
                          "No memos, no shared prices, no shortcuts: the same results, slowly");
    if (!takes_reference(command->get_name())) reference->group("");  // not in its help
  }
  try {
    std::vector<std::string> words = expand_lists({argv + 1, argv + argc});
    std::ranges::reverse(words);  // CLI11 takes them in reverse order
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return parse_failure(app, error, common.command_line);
  }
  const std::string command = app.get_subcommands().front()->get_name();
  if (common.reference && !takes_reference(command)) {
    return refuse(
        {fmt::format("--reference: has no effect on {}, which has no shortcuts to leave out; {} take it",
                     command, join_names(kTakingReference))});
  }
  return run_action(action);
}

}  // namespace

}  // namespace shardscape::cli

int main(int argc, char** argv) {
  shardscape::cli::keep_memory();
  std::signal(SIGXFSZ,
              SIG_IGN);  // exceeding a limit on file sizes is then an error of write(), like a full disk
  return shardscape::cli::run(argc, argv);
}
