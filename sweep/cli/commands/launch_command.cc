// shardscape launch: the command line or file with which a framework runs a plan, and what that does not say.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/safe_text.h"
#include "engine/simulate.h"
#include "results_schema/disk/output_file.h"
#include "sweep/cli/command.h"
#include "sweep/cli/commands/chosen_point.h"
#include "sweep/cli/reports/launch_report.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/launch/write_launch.h"
#include "sweep/space/point_text.h"

namespace shardscape::cli {

namespace {

constexpr const char* kLaunchFooter =
    R"(Examples:
  shardscape launch study.yaml --point tp=4,pp=4,dp=4,zero=1,recompute=selective --for megatron-lm
  shardscape launch study.yaml --point tp=8,dp=8,zero=3 --for torchtitan -o job      train.toml and launch.sh
  shardscape launch chat.yaml --point tp=8,pp=1,dp=2 --for vllm --json
  shardscape launch chat.yaml --point tp=8,pp=1,dp=1,prefill_tp=4,prefill_dp=2 --for dynamo    two pools
  shardscape launch --options --for sglang            what of a plan SGLang's options say, and where that is documented

Comments say what of the plan and its setting the framework has no option for, so that it runs otherwise. Constants
of a stack that are measured (launches, latencies, shares of bandwidth) are none of it. A plan that the framework
cannot run is bad input, with the option that it would need. Without --for: the framework that the stack is nearest to.)";

struct LaunchArguments {
  StudyArguments study;
  std::string point, framework;
  std::filesystem::path folder;  ///< empty: everything goes to stdout
  std::int64_t gpus_per_node = 0;
  bool options = false, json = false, force = false;
};

int print_options(const LaunchArguments& arguments) {
  Rows rows({{left("option"), "option"},
             {left("says"), "says"},
             {left("from version"), "since"},
             {left("documented at"), "source"}});
  const launch::Framework& of = *launch::find_framework(arguments.framework);
  for (const launch::Option& row : of.options) {
    if (row.name.empty()) continue;
    rows.add({cell::words(row.name), cell::words(fmt::format("{}", fmt::join(row.keys, " "))),
              cell::words(row.since), cell::words(row.source)});
  }
  if (arguments.json) {
    std::cout << json_text(Json{{"for", of.name}, {"version", of.version}, {"options", rows.json()}}, 2)
              << '\n';
    return kDone;
  }
  std::cout << of.title << ", as of " << of.version << '\n';
  rows.print(std::cout, 2);
  return kDone;
}

/// The framework that --for names; of what the study runs.
const launch::Framework& framework_of(const LaunchArguments& arguments, const Setting& setting) {
  const Phase phase = setting.workload.phase;
  if (arguments.framework.empty()) return launch::nearest_framework(setting.system.stack, phase);
  const launch::Framework& found = *launch::find_framework(arguments.framework);
  if (found.phase != phase)
    throw BadInput(fmt::format("--for: {} is for {}; the study is one of {}", found.title,
                               name_of(found.phase), name_of(phase)));
  return found;
}

void write_files(const LaunchArguments& arguments, const sweep::Study& study, const PlanLaunch& made) {
  std::filesystem::create_directory(arguments.folder);
  std::vector<launch::LaunchFile> files = made.launch.files;
  std::ostringstream script;
  script << "#!/bin/sh\n";
  if (!made.misfit.empty()) script << "# " << made.misfit << '\n';
  // Without files beside it the command finds what is where it is started, such as pretrain_gpt.py.
  if (!files.empty())
    script << "# from anywhere; a copy of it, such as sbatch runs, from the folder of these files\n"
           << launch::to_own_folder(files.front().name);
  print_launch(script, made, false);
  files.push_back({"launch.sh", script.str() + made.launch.command});
  // All places are looked at before anything is written.
  std::vector<results::OutputPath> places;
  for (const launch::LaunchFile& file : files)
    places.emplace_back(arguments.folder / file.name, arguments.force, input_files(study));
  for (std::size_t i = 0; i < files.size(); ++i) {
    results::write_output(places[i], files[i].text);
    std::cerr << "wrote " << places[i].asked().string() << '\n';
  }
}

int run_launch(const LaunchArguments& arguments, const CommonOptions& common) {
  if (arguments.options) {
    if (arguments.framework.empty()) throw BadInput("--options: say whose, with --for");
    return print_options(arguments);
  }
  if (arguments.study.file.empty()) throw BadInput("STUDY: missing; the study whose plan is to be launched");
  const sweep::Study study = load(for_point(arguments.study, arguments.point), common);
  const sweep::ChosenPoint point = opening_point(arguments.study, study, arguments.point);
  const launch::Framework& framework = framework_of(arguments, point.setting);
  Simulator simulator(point.setting);
  const Prediction verdict = simulator.judge(point.plan);
  if (verdict.status != Status::ok && verdict.status != Status::memory)
    throw BadInput(fmt::format("--point: {}", describe(name_of(verdict.reason))));
  PlanLaunch made = plan_launch(study, point.setting, point.plan, framework, arguments.gpus_per_node);
  made.memory = memory_notes(point.setting, verdict);
  const double bytes = verdict.memory_peak.value();
  const double capacity = memory_of_fullest(point.setting.system, verdict.peak_in_prefill).value();
  made.status = name_of(verdict.status);
  made.reason = name_of(verdict.reason);
  made.tight = !tight_memory(bytes, capacity).empty();
  if (verdict.status == Status::memory)
    made.misfit = fmt::format("this plan does not fit: it needs {} of a GPU's {} ({})", format_bytes(bytes),
                              format_bytes(capacity), describe(made.reason));
  if (!made.launch.refused.empty()) {
    std::vector<std::string> problems;
    for (const std::string& why : made.launch.refused) problems.push_back("--point: " + why);
    throw BadInput(std::move(problems));
  }
  if (!arguments.folder.empty()) write_files(arguments, study, made);
  if (arguments.json) {
    std::cout << json_text(to_json(made), 2) << '\n';
  } else {
    print_launch(std::cout, made, arguments.folder.empty());
  }
  std::cout.flush();
  if (verdict.status == Status::memory) std::cerr << "note: by the prediction " << made.misfit << '\n';
  note_other_settings(study, point);
  return kDone;
}

}  // namespace

void add_launch_command(const Program& program) {
  const auto [command, arguments] = program.add(
      "launch", "What starts a plan in a framework: its command line or file, and what these do not say",
      kLaunchFooter, run_launch);
  arguments->study.results_too = true;
  add_study_arguments(*command, arguments->study);
  command->get_option("STUDY")->required(false);
  add_value(*command, "--point", arguments->point, "KEY=VALUE,...", "The plan, as in simulate");
  const std::string frameworks = fmt::format("{}", fmt::join(launch::framework_names(), "|"));
  add_value(*command, "--for", arguments->framework, frameworks.c_str(), "The framework that is to run it")
      ->check(one_of(launch::framework_names()));
  add_value(*command, "--gpus-per-node", arguments->gpus_per_node, "N",
            "GPUs of a machine (default: those of the cluster's scale-up domain; of racks 4 or 8)")
      ->check(whole_number(1, 1024));
  command->add_flag("--options", arguments->options,
                    "Show the framework's options that are known, and their sources");
  add_value(*command, "-o,--output", arguments->folder, "DIR",
            "Write the files and launch.sh into this folder");
  add_force(*command, arguments->force);
  add_json(*command, arguments->json);
}

}  // namespace shardscape::cli
