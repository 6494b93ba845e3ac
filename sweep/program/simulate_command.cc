// shardscape simulate: one point of a study, in full.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>

#include "engine/simulate.h"
#include "sweep/program/draw_report.h"
#include "sweep/program/fault_parser.h"
#include "sweep/program/program.h"
#include "sweep/program/simulate_report.h"
#include "sweep/space/constraint.h"
#include "sweep/space/point_text.h"

namespace shardscape::program {

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  shardscape simulate study.yaml\n"
    "  shardscape simulate study.yaml --point tp=8,cp=1,pp=4,dp=2,zero=1,recompute=selective,mbs=1 "
    "--explain\n"
    "  shardscape simulate study.yaml --set workload.global_batch=256 --json\n"
    "  shardscape simulate study.yaml --fault 0-1=0.5          the link between 0 and 1 at half its "
    "bandwidth\n"
    "  shardscape simulate study.yaml --fault 0-1=dead         the same link gone; its traffic takes a "
    "detour\n"
    "  shardscape simulate study.yaml --fault 'nvlink: 3 -> switch 0=0.5'    one direction, as links are "
    "named\n"
    "  shardscape simulate study.yaml --draw 17     the 18th fault sample of the study\n"
    "  shardscape simulate study.yaml --timeline step.json     the pipeline, for ui.perfetto.dev\n"
    "  shardscape simulate study.yaml --point order=pp-dp-cp-tp --optimise-placement     never slower than "
    "the plain order\n"
    "\n"
    "--point takes tp, sp, cp, pp, dp, zero, recompute, mbs, schedule, vpp, order (tp, cp, pp, dp, order, "
    "concurrency\n"
    "for inference). An axis left out takes the first value of the study; a degree that fills follows from "
    "the others.\n"
    "The time is predicted whatever the memory verdict.";

struct SimulateArguments {
  StudyArguments study;
  std::string point;
  std::string mode = "hierarchical";
  std::vector<std::string> faults;
  std::optional<std::uint64_t> draw;
  std::filesystem::path timeline;  ///< empty: none
  bool explain = false, optimise_placement = false, json = false;
};

sweep::PointText chosen_point(const SimulateArguments& arguments, const sweep::Study& study) {
  auto point = sweep::parse_point(arguments.point, study.space, study.gpus, study.phase());
  if (point) return *point;
  std::string lines;
  for (const Problem& problem : point.error().list())
    lines += "--point: " + problem.field + ": " + problem.message + "\n";
  throw BadInput(lines);
}

void write_timeline(const std::filesystem::path& file, const std::string& trace) {
  std::ofstream out(file);
  out << trace << '\n';
  out.close();
  if (!out) throw std::runtime_error(file.string() + ": cannot be written");
}

/// Things a reader should know although they are no errors.
void print_notes(const sweep::Study& study, const sweep::PointText& point, const Setting& setting) {
  if (study.setting_count() > 1) {
    std::cerr << "note: the study has " << study.setting_count() << " settings; this is the first ("
              << describe_setting(study, 0) << "), --set chooses another\n";
  }
  for (const std::string& text : study.space.constraints) {
    const auto constraint = sweep::Constraint::parse(text);
    if (constraint && !constraint->holds(point.plan, setting.workload)) {
      std::cerr << "note: a sweep would reject this plan by the constraint '" << text << "'\n";
    }
  }
}

int run_simulate(const SimulateArguments& arguments, const CommonOptions& common) {
  const sweep::Study study = load(arguments.study, common);
  const sweep::PointText point = chosen_point(arguments, study);
  Setting setting = study.setting(0);
  if (point.concurrency) setting.workload.concurrency = *point.concurrency;
  std::optional<sweep::FaultDraw> draw;
  if (arguments.draw) draw = draw_sample(study, setting, *arguments.draw);
  const FaultSet faults = draw ? draw->set : parse_faults(arguments.faults, setting.system.fabric);

  Simulator simulator(setting, {.reference = common.reference, .time_infeasible = true});
  const Prediction healthy = draw ? simulator.run(point.plan) : Prediction();
  Details details;
  details.want_timeline = !arguments.timeline.empty();
  if (details.want_timeline && study.phase() == Phase::inference) {
    throw BadInput("--timeline: draws the pipeline of a training step; the study is one of inference\n");
  }
  const Prediction prediction = simulator.run(point.plan, faults, &details);
  const bool timed = prediction.status == Status::ok || prediction.status == Status::memory;
  if (arguments.optimise_placement && !timed) {
    throw BadInput("--optimise-placement: there is nothing to place, the plan is rejected: " +
                   std::string(name_of(prediction.reason)) + "\n");
  }
  const PlacementReport placement =
      study_placement(setting, point.plan, details, faults, common.reference, arguments.optimise_placement);
  constexpr std::size_t kNeighbours = 3;
  const std::vector<Neighbour> nearest = prediction.status == Status::ok
                                             ? std::vector<Neighbour>()
                                             : nearest_feasible(setting, point.plan, kNeighbours);
  const SimulatedPoint simulated{study, setting, point.plan, prediction, details, placement, nearest};
  if (details.want_timeline) {
    if (details.timeline.empty()) {
      throw BadInput("--timeline: there is nothing to draw, the plan is rejected: " +
                     std::string(name_of(prediction.reason)) + "\n");
    }
    write_timeline(arguments.timeline, details.timeline);
  }
  if (arguments.json) {
    nlohmann::ordered_json json = to_json(simulated);
    if (draw) json["draw"] = to_json(DrawReport{*draw, setting, healthy, prediction});
    if (arguments.explain) json["operators"] = operators_json(simulated);
    std::cout << json.dump(2) << '\n';
    return kDone;
  }
  if (draw) print_draw(std::cout, {*draw, setting, healthy, prediction});
  print_report(std::cout, simulated);
  if (arguments.explain) print_operators(std::cout, simulated);
  std::cout.flush();
  print_notes(study, point, setting);
  return kDone;
}

}  // namespace

void add_simulate_command(CLI::App& app, const CommonOptions& common, Action& action) {
  CLI::App* const command = app.add_subcommand("simulate", "Predict one point of a study in full");
  const auto arguments = std::make_shared<SimulateArguments>();
  add_study_arguments(*command, arguments->study);
  command->add_option("--point", arguments->point, "The plan: tp=8,cp=1,pp=4,... (see below)")
      ->type_name("KEY=VALUE,...");
  command->add_option("--mode", arguments->mode, "How the step is executed: hierarchical")
      ->check(CLI::IsMember({"hierarchical"}));
  command
      ->add_option(
          "--fault", arguments->faults,
          "A sick link: A-B, A->B, its name or its id, and what is left of its bandwidth, 0 or dead: "
          "nothing; repeatable")
      ->type_name("LINK=DERATE")
      ->allow_extra_args(false);
  command
      ->add_option("--draw", arguments->draw,
                   "The faults of one sample of the study's 'faults:', as a sweep meets them")
      ->type_name("SAMPLE")
      ->excludes("--fault");
  command->add_flag("--explain", arguments->explain, "Add a table of the operators");
  command
      ->add_option("--timeline", arguments->timeline,
                   "Write the pipeline as a Chrome trace, for ui.perfetto.dev")
      ->type_name("OUT.json");
  command->add_flag("--optimise-placement", arguments->optimise_placement,
                    "Look for a faster placement of the ranks on the fabric, and say what it gains");
  command->add_flag("--json", arguments->json, "One JSON document on stdout");
  command->footer(kFooter);
  command->callback([arguments, &common, &action] {
    action = [arguments, &common] { return run_simulate(*arguments, common); };
  });
}

}  // namespace shardscape::program
