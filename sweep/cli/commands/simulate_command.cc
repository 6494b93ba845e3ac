// shardscape simulate: shows one point of a study in full.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "engine/simulate.h"
#include "engine/spec/scenario.h"
#include "engine/timeline/program_export.h"
#include "engine/timeline/schedule_text.h"
#include "engine/timeline/timed_step.h"
#include "results_schema/disk/output_file.h"
#include "sweep/chakra/trace_folder.h"
#include "sweep/cli/command.h"
#include "sweep/cli/commands/chosen_point.h"
#include "sweep/cli/commands/fault_parser.h"
#include "sweep/cli/reports/launch_report.h"
#include "sweep/cli/reports/load_mix_report.h"
#include "sweep/cli/reports/simulate_report.h"
#include "sweep/cli/reports/worth_report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/terminal.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/space/constraint.h"
#include "sweep/space/point_text.h"
#include "sweep/study/choose_point.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::cli {

namespace {

constexpr std::size_t kUsualWidth = 120;

std::int32_t chart_width() {
  const auto width = terminal_width(std::cout).value_or(kUsualWidth);
  return std::clamp(static_cast<std::int32_t>(width), timeline::kNarrowestChart, timeline::kWidestChart);
}

/// The chart, with `width` characters; 0: as wide as the terminal, or 120 where there is none.
std::string schedule_chart(const timeline::TimedStep& step, std::int32_t width) {
  std::vector<schedule::PipelineSpan> spans;
  const std::vector<double> ends = schedule::run_in_order(step.shape, step.times, step.transfer, &spans);
  return timeline::schedule_text({step.shape, step.transfer, spans, ends, step.tails},
                                 width > 0 ? width : chart_width());
}

/// Writes the traces of all ranks of a training step. Returns the number of nodes.
std::uint64_t write_chakra(const execution::Programs& programs, const Setting& setting,
                           results::OutputFolder& folder) {
  const timeline::ProgramExport exported(programs, setting.training_host().step_fixed.value());
  std::uint64_t nodes = 0;
  folder.fill([&](const std::filesystem::path& place) {
    chakra::TraceWriter writer(place, exported.groups(), setting.system.fabric.dimensions.size());
    for (std::int32_t rank = 0; rank < exported.ranks(); ++rank) {
      const timeline::RankTrace trace = exported.rank(rank);
      nodes += trace.nodes.size();
      writer.write_rank(rank, trace);
    }
  });
  return nodes;
}

constexpr const char* kSimulateExamples =
    R"(Examples:
  shardscape simulate study.yaml
  shardscape simulate study.yaml --point tp=8,cp=1,pp=4,dp=2,zero=1,recompute=selective,mbs=1 --explain
  shardscape simulate study.yaml --set workload.global_batch=256 --json
  shardscape simulate study.yaml --fault 0-1=0.5          the link between 0 and 1 at half its bandwidth; where GPUs
                                                          meet in switches, 0-1 is refused and 0's links are named
  shardscape simulate study.yaml --fault 0-1=dead         the same link gone; its traffic takes a detour
  shardscape simulate study.yaml --fault 0-1=0.5+5us      half its bandwidth and 5 us more latency
  shardscape simulate study.yaml --fault 'nvlink: 3 -> switch 0=0.5'    one direction, as links are named
  shardscape simulate study.yaml --fault slow_device:3=0.8 --fault hbm_derate:7=0.5    GPU 3 at 80 % of its clock, GPU 7
                                                          at half its memory bandwidth
  shardscape simulate study.yaml --fault nic_down:5       without the adapter of GPU 5
  shardscape simulate study.yaml --fault 'switch_down:switch 0'    without that switch
  shardscape simulate study.yaml --draw 17     the 18th fault sample of the study
  shardscape simulate study.yaml --worth       what one more GB/s, GB or TFLOP/s, or a microsecond less, is worth here
  shardscape simulate study.yaml --mode flattened         every message of every rank
  shardscape simulate study.yaml --compare                both modes, by class of time
  shardscape simulate chat.yaml --point tp=8,pp=1,dp=2,prefill_tp=4,prefill_dp=4     one pool prefills, one decodes
  shardscape simulate study.yaml --timeline step.json     the pipeline, for ui.perfetto.dev
  shardscape simulate chat.yaml --set workload.request_rate='3 /s' --timeline load.json     requests, batch, queue, cache
  shardscape simulate chat.yaml --set 'workload.sessions={turns: 5, new_tokens: 200, think_time: 10 s}' --explain
                                                          five prompts of each user; where their time goes
  shardscape simulate study.yaml --point pp=4,schedule=zero_bubble --schedule-text --width 160
  shardscape simulate study.yaml --chakra traces          for shardscape replay and other simulators
  shardscape simulate study.yaml --mode flattened --timeline step.json --chakra traces    the same of what was executed
  shardscape simulate study.yaml --point order=pp-dp-cp-tp --optimise-placement     never slower than the plain order

)";

std::string simulate_footer() {
  return fmt::format(
      "{}--point takes {} (for inference {}).\nAn axis left out takes the first value of the study; a degree "
      "that is 'fill' there follows from the others.\nThe time is predicted whatever the memory verdict.",
      kSimulateExamples, join_names(sweep::point_keys(Phase::training)),
      join_names(sweep::point_keys(Phase::inference)));
}

struct SimulateArguments {
  StudyArguments study;
  std::string point;
  std::string mode;  ///< empty: the mode of the study
  std::vector<std::string> faults;
  std::optional<std::uint64_t> draw;
  std::filesystem::path timeline;  ///< empty: no timeline
  std::filesystem::path chakra;    ///< empty: no traces
  bool schedule_text = false;
  std::int32_t width = 0;  ///< width of the chart; 0: as wide as the terminal
  bool explain = false, worth = false, compare = false, optimise_placement = false, json = false,
       force = false;
};

/// Prints notes about things that a reader should know although they are not errors.
void print_notes(const sweep::Study& study, const sweep::ChosenPoint& point) {
  note_other_settings(study, point);
  for (const std::string& text : study.space.constraints) {
    const auto constraint = sweep::Constraint::parse(text);
    if (constraint && !constraint->holds(point.plan, point.setting.workload)) {
      std::cerr << "note: a sweep would reject this plan by the constraint '" << text << "'\n";
    }
  }
}

[[noreturn]] void refuse(const char* what, const Prediction& prediction) {
  throw BadInput(fmt::format("{}, the plan is rejected: {}", what, name_of(prediction.reason)));
}

/// Writes the outputs of --schedule-text and --chakra.
class StepOutputs {
 public:
  StepOutputs(const SimulateArguments& arguments, Phase phase) : arguments_(arguments) {
    ProblemList problems;
    const auto training_only = [&](bool asked, const char* what) {
      if (asked && phase == Phase::inference)
        problems.add(what + std::string("; the study is one of inference"));
    };
    training_only(arguments.schedule_text,
                  "--schedule-text: charts the pipeline of a training step; serving has no such schedule");
    training_only(!arguments.chakra.empty(),
                  "--chakra: writes the traces of a training step; requests being served are not written as "
                  "traces");
    if (arguments.schedule_text && arguments.json) {
      problems.add("command line: --schedule-text is for people, --json for programs; take one of them");
    }
    if (arguments.width > 0 && !arguments.schedule_text) {
      problems.add("command line: --width is that of --schedule-text");
    }
    problems.finish();
    if (!arguments.chakra.empty()) chakra_.emplace(arguments.chakra);
  }

  void ask(Details& details) const {
    details.want_schedule = arguments_.schedule_text;
    details.want_programs = chakra_.has_value();
  }

  void write(const Prediction& prediction, const Details& details, const Setting& setting) {
    if (arguments_.schedule_text && !details.schedule)
      refuse("--schedule-text: there is no step to show", prediction);
    if (!chakra_) return;
    if (!details.programs) refuse("--chakra: there is no step to show", prediction);
    const std::uint64_t nodes = write_chakra(*details.programs, setting, *chakra_);
    std::cerr << "wrote " << format_count(nodes) << " nodes of " << format_count(details.programs->ranks)
              << " ranks to " << arguments_.chakra.string() << '\n';
  }

 private:
  const SimulateArguments& arguments_;
  std::optional<results::OutputFolder> chakra_;
};

/// By which share numbers are moved to tell what they are worth: large beside steps of prices, small beside the whole.
constexpr double kWorthShare = 0.05;

/// Runs one plan in both modes and compares them.
int run_compare(const SimulateArguments& arguments, const Setting& setting, const ParallelPlan& plan,
                const FaultSet& faults, bool reference) {
  const auto predict = [&](ExecutionMode mode, Details& details) {
    Simulator simulator(setting, {.reference = reference, .time_infeasible = true, .mode = mode});
    return simulator.run(plan, faults, &details);
  };
  Details details;
  const Prediction hierarchical = predict(ExecutionMode::hierarchical, details);
  if (!hierarchical.has_times()) {
    refuse("--compare: there is nothing to compare", hierarchical);
  }
  Details flattened_details;
  const Prediction flattened = predict(ExecutionMode::flattened, flattened_details);
  const ModeComparison comparison{hierarchical, flattened, flattened_details.events, setting.workload.phase,
                                  flattened_details.executed_ranks};
  if (arguments.json) {
    std::cout << json_text(to_json(comparison), 2) << '\n';
  } else {
    print_comparison(std::cout, comparison);
  }
  return kDone;
}

/// BadInput where something is asked of a server that only training has, or only a simulated load.
void refuse_what_servers_lack(const SimulateArguments& arguments, const Setting& setting, ExecutionMode mode,
                              const FaultSet& faults) {
  if (setting.workload.phase == Phase::training) return;
  if (mode == ExecutionMode::checked)
    throw BadInput("--mode: checked is of training; servers are hierarchical or flattened\n");
  if (!faults.devices.empty()) {
    const std::string what =
        arguments.draw ? "--draw: the sample has a sick device, which " : "--fault: a sick device is what ";
    throw BadInput(what + "training alone models\n");
  }
  if (!arguments.timeline.empty() && !setting.workload.load) {
    throw BadInput(
        "--timeline: draws a training step, or a load that is simulated request by request; the study is of "
        "servers in their steady state; 'workload.client: inferencex' or 'workload.request_rate' would "
        "simulate "
        "its requests\n");
  }
}

int run_simulate(const SimulateArguments& arguments, const CommonOptions& common) {
  const sweep::Study study = load(arguments.study, common);
  const sweep::ChosenPoint point = choose_point(study, point_or_best(arguments.study, arguments.point));
  if (!point.warning.empty())
    std::cerr << styled(std::cerr, "warning: ", "33") << message_line(point.warning) << '\n';
  const Setting& setting = point.setting;
  std::optional<sweep::FaultDraw> draw;
  if (arguments.draw) draw = draw_sample(study, setting, *arguments.draw);
  const FaultSet faults = draw ? draw->set : parse_faults(arguments.faults, setting.system.fabric);
  const ExecutionMode mode =
      arguments.mode.empty() ? study.mode : parse_enum<ExecutionMode>(arguments.mode).value();
  refuse_what_servers_lack(arguments, setting, mode, faults);
  const bool pooled = point.plan.disaggregated();
  if (arguments.optimise_placement && pooled) {
    throw BadInput("--optimise-placement: places one kind of replica, the plan has a pool that prefills\n");
  }
  if (arguments.compare && arguments.worth)
    throw BadInput("command line: --worth is of one mode, --compare shows two; take one of them\n");
  if (arguments.compare) return run_compare(arguments, setting, point.plan, faults, common.reference);
  Simulator simulator(setting, {.reference = common.reference, .time_infeasible = true, .mode = mode});
  Details details;
  details.want_timeline = !arguments.timeline.empty();
  details.want_load_mixes = arguments.explain;
  std::optional<results::OutputPath> timeline;
  if (details.want_timeline) timeline.emplace(arguments.timeline, arguments.force, input_files(study));
  StepOutputs outputs(arguments, study.phase());
  outputs.ask(details);
  const Prediction healthy = faults.empty() && !draw ? Prediction() : simulator.run(point.plan);
  const Prediction prediction = simulator.run(point.plan, faults, &details);
  const bool timed = prediction.has_times();
  if (arguments.optimise_placement && !timed) {
    refuse("--optimise-placement: there is nothing to place", prediction);
  }
  const bool optimised = sweep::placement_of(study, 0) == sweep::PlacementChoice::optimised;
  const PlacementReport placement =
      pooled ? PlacementReport()
             : study_placement(setting, point.plan, details, faults, common.reference,
                               timed && (arguments.optimise_placement || optimised));
  const PointRemarks remarks = remarks_on(study, setting, point.plan, prediction, point.at);
  const SimulatedPoint simulated{study, setting, point.plan, prediction, details, placement, remarks};
  if (details.want_timeline) {
    if (details.timeline.empty()) {
      refuse("--timeline: there is nothing to draw", prediction);
    }
    results::write_output(*timeline, details.timeline + '\n');
  }
  outputs.write(prediction, details, setting);
  explorer::WorthOfNumbers worth;
  if (arguments.worth)
    worth = explorer::worth_of_numbers(study, setting, point.plan,
                                       {.reference = common.reference, .mode = mode}, kWorthShare);
  if (arguments.json) {
    nlohmann::ordered_json json = to_json(simulated);
    if (draw) json["draw"] = to_json(DrawReport{*draw, setting, healthy, prediction});
    add_faults(arguments.faults, setting, healthy, prediction, json);
    if (arguments.explain) json["operators"] = operators(simulated).json();
    if (arguments.explain) json.update(load_mix_json(prediction, details.load_mixes));
    if (arguments.worth) json.update(to_json(worth));
    std::cout << json_text(json, 2) << '\n';
    return kDone;
  }
  if (draw) print_draw(std::cout, {*draw, setting, healthy, prediction});
  print_faults(std::cout, arguments.faults, setting, healthy, prediction);
  print_report(std::cout, simulated);
  if (arguments.schedule_text) std::cout << '\n' << schedule_chart(*details.schedule, arguments.width);
  if (arguments.explain) print_operators(std::cout, simulated);
  if (arguments.worth) print_worth(std::cout, worth, kWorthShare);
  if (prediction.has_times()) {
    std::cout << "\nlaunch    "
              << launch_line(study, setting, point.plan, words_of(arguments.study, common),
                             point_id_of(arguments.point) ? arguments.point : "")
              << '\n';
  }
  std::cout.flush();
  print_notes(study, point);
  return kDone;
}

}  // namespace

void add_simulate_command(const Program& program) {
  const auto [command, arguments] =
      program.add("simulate", "Predict one point of a study in full", simulate_footer(), run_simulate);
  arguments->study.results_too = true;
  add_study_arguments(*command, arguments->study);
  add_value(*command, "--point", arguments->point, "KEY=VALUE,...",
            "The plan: tp=8,cp=1,pp=4,... (see below)");
  command
      ->add_option(
          "--mode", arguments->mode,
          "How the time is found: hierarchical (by layer, stage and pipeline), flattened (every "
          "message of every rank) or checked (flattened where the former is outside its domain); default: "
          "the study's")
      ->type_name("hierarchical|flattened|checked")
      ->check(one_of({"hierarchical", "flattened", "checked"}));
  CLI::Option* const compare = command->add_flag(
      "--compare", arguments->compare,
      "Predict the step (inference: a request) in both modes and show where they differ, by class");
  add_value(*command, "--fault", arguments->faults, "FAULT",
            "A sick link: A-B, A->B, its name or its id, and what is left of its bandwidth, 0 or dead: "
            "nothing; or " +
                fault_parts() + "; repeatable");
  add_value(*command, "--draw", arguments->draw, "SAMPLE",
            "The faults of one sample of the study's 'faults:', as a sweep meets them")
      ->check(whole_number(0))
      ->excludes("--fault");
  command->add_flag("--explain", arguments->explain,
                    "Add a table of the operators; of a simulated load, of where its requests' time goes, of "
                    "iterations, and of what requests wait for");
  command
      ->add_flag(
          "--worth", arguments->worth,
          "Add a table of what one more unit of each number of device, fabric and stack is worth: the plan "
          "is simulated with 5 % more and less of each, on a healthy machine")
      ->excludes("--fault")
      ->excludes("--draw");
  command->add_flag("--schedule-text", arguments->schedule_text,
                    "Chart the pipeline: stages as rows, time across");
  command
      ->add_option("--width", arguments->width, "Characters of the chart (default: the terminal's, or 120)")
      ->check(whole_number(timeline::kNarrowestChart, timeline::kWidestChart));
  add_value(*command, "--chakra", arguments->chakra, "DIR",
            "Training: write Chakra execution traces of all ranks into a new folder, for replay and other "
            "simulators; replay gives the step time of --mode flattened");
  add_value(
      *command, "--timeline", arguments->timeline, "OUT.json",
      "Write a Chrome trace, for ui.perfetto.dev. Training: the pipeline and a device of each stage, or with "
      "--mode flattened what every rank did; a simulated load: requests, iterations of every server, queue, "
      "batch and cache over time");
  command->add_flag("--force", arguments->force, "Replace the file that --timeline names");
  command->add_flag("--optimise-placement", arguments->optimise_placement,
                    "Look for a faster placement of the ranks on the fabric, and say what it gains");
  add_json(*command, arguments->json);
  for (const char* const of_one_mode :
       {"--mode", "--explain", "--schedule-text", "--chakra", "--timeline", "--optimise-placement"})
    compare->excludes(of_one_mode);
}

}  // namespace shardscape::cli
