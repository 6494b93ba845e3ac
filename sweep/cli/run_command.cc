// The program's commands: parses a command line and runs one of them.
#include "sweep/cli/run_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <string_view>

#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"

namespace shardscape::cli {

namespace {

constexpr const char* kMainFooter =
    R"(Examples:
  shardscape new --model llama3.1-70b --cluster dgx-h100 --gpus 64
  shardscape check llama3.1-70b-64xa100
  shardscape sweep llama3.1-70b-64xa100 -o out.h5
  shardscape top out.h5 -n 10 --breakdown
  shardscape simulate llama3.1-70b-64xa100 --point tp=8,pp=4,dp=2
  shardscape gemm 4096 12288 12288 --device a100-sxm-80gb

Exit codes: 0 done, 1 environment (disk, files), 2 bad input, 3 accuracy outside tolerance, 130 interrupted.
'shardscape COMMAND --help' says more about a command, 'shardscape help TOPIC' about studies, devices, models, ...)";

/// The commands that predict many plans or messages, with memos and shortcuts that --reference leaves out.
constexpr std::array<std::string_view, 8> kTakingReference = {"capacity", "sweep",    "search",    "check",
                                                              "simulate", "validate", "calibrate", "network"};

bool takes_reference(std::string_view command) {
  return std::ranges::find(kTakingReference, command) != kTakingReference.end();
}

}  // namespace

int run_command(CommonOptions& common) {
  Action action;
  CLI::App app("Shardscape explores how to shard a large language model over a GPU cluster.", "shardscape");
  app.set_version_flag("--version", fmt::format("shardscape {}", version()));
  app.require_subcommand(1);
  app.formatter(help_formatter());
  app.footer(kMainFooter);
  const Program program{app, common, action};
  for (AddCommand* const add :
       {add_new_command,      add_sweep_command,       add_check_command,   add_simulate_command,
        add_top_command,      add_sensitivity_command, add_report_command,  add_explore_command,
        add_export_command,   add_merge_command,       add_verify_command,  add_diff_command,
        add_search_command,   add_capacity_command,    add_gemm_command,    add_attention_command,
        add_experts_command,  add_collective_command,  add_network_command, add_replay_command,
        add_validate_command, add_calibrate_command,   add_presets_command, add_launch_command,
        add_compare_command,  add_guide_commands})
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
    std::vector<std::string> words =
        expand_lists({common.command_line.begin() + 1, common.command_line.end()});
    std::ranges::reverse(words);  // CLI11 takes them in reverse order
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);  // --help or --version
    UsageProblem problem = usage_problem(app, error, common.command_line);
    throw BadCommandLine(std::move(problem.lines), std::move(problem.help));
  }
  const std::string command = app.get_subcommands().front()->get_name();
  if (common.reference && !takes_reference(command)) {
    throw BadInput(
        fmt::format("--reference: has no effect on {}, which has no shortcuts to leave out; {} take it",
                    command, join_names(kTakingReference)));
  }
  return action();
}

}  // namespace shardscape::cli
