// Each request reads the study anew with its changes, as a command line would, and answers with what `simulate
// --json` says, so that the page and the program cannot differ.
#include "sweep/explorer/wasm/answers.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/safe_text.h"
#include "engine/schedule/pipeline.h"
#include "engine/simulate.h"
#include "engine/timeline/timed_step.h"
#include "results_schema/rows/columns.h"
#include "results_schema/rows/limits.h"
#include "sweep/cli/reports/load_mix_report.h"
#include "sweep/cli/reports/simulate_report.h"
#include "sweep/cli/reports/worth_report.h"
#include "sweep/explorer/field_list.h"
#include "sweep/explorer/node_json.h"
#include "sweep/explorer/worth_of_numbers.h"
#include "sweep/space/constraint.h"
#include "sweep/space/point_text.h"
#include "sweep/study/choose_point.h"
#include "sweep/study/load_study.h"
#include "sweep/study/overrides.h"

namespace shardscape::explorer {

namespace {

using Json = Answers::Json;
namespace fs = std::filesystem;

std::vector<std::string> changes_of(const Json& request) {
  return request.value("set", std::vector<std::string>());
}

sweep::ChosenPoint chosen(const Json& request, const sweep::Study& study) {
  auto plan = sweep::choose_plan(request.value("point", std::string()), study);
  if (plan) return with_setting(*std::move(plan), study);
  std::vector<std::string> problems;
  for (const Problem& problem : plan.error().list())
    problems.push_back("point: " + problem.field + (problem.field.empty() ? "" : ": ") + problem.message);
  throw Refused(std::move(problems));
}

/// The spans of a schedule as a chart draws them, and what follows the pipeline on each stage.
Json schedule_json(const timeline::TimedStep& step) {
  std::vector<schedule::PipelineSpan> spans;
  const std::vector<double> ends = schedule::run_in_order(step.shape, step.times, step.transfer, &spans);
  Json json = {{"stages", step.shape.stages}, {"spans", Json::array()}, {"tails", Json::array()}};
  double end = 0;
  for (const schedule::PipelineSpan& span : spans)
    json["spans"].push_back({{"stage", span.stage},
                             {"pass", !span.operation.backward ? "forward"
                                      : span.operation.weight  ? "weights"
                                                               : "backward"},
                             {"microbatch", span.operation.microbatch},
                             {"chunk", span.operation.chunk},
                             {"begin_s", step.step_fixed + span.start},
                             {"end_s", step.step_fixed + span.end}});
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    double begin = step.step_fixed + ends[stage];
    const auto add = [&](const char* name, double seconds) {
      if (seconds <= 0) return;
      json["tails"].push_back(
          {{"stage", stage}, {"name", name}, {"begin_s", begin}, {"end_s", begin + seconds}});
      begin += seconds;
    };
    if (stage < step.tails.size()) {
      add("weight gradients of the head", step.tails[stage].deferred);
      add("data traffic", step.tails[stage].data_comm);
      add("optimizer", step.tails[stage].optimizer);
    }
    end = std::max(end, begin);
  }
  json["end_s"] = end;
  return json;
}

}  // namespace

std::string Answers::text(const std::string& request) {
  Json problems = Json::array();
  try {
    return json_text(answer(Json::parse(request)));
  } catch (const Refused& bad) {
    for (const std::string& problem : bad.problems) problems.push_back(problem);
  } catch (const std::exception& error) {
    problems.push_back(error.what());
  }
  return json_text(Json{{"problems", problems}});
}

Json Answers::answer(const Json& request) {
  const auto asked = request.at("ask").get<std::string>();
  if (asked == "load") return load(request);
  if (study_.empty()) throw Refused({"ask: the study is loaded first"});
  if (asked == "fields") return fields(request);
  if (asked == "predict") return predict(request);
  if (asked == "worth") return worth(request);
  if (asked == "sweep") return sweep(request);
  throw Refused({"ask: must be load, fields, predict, worth or sweep, not \"" + asked + '"'});
}

sweep::Study Answers::changed(const Json& request, const yaml::Catalog& catalog,
                              const std::vector<std::string>& more) const {
  sweep::StudyOptions options;
  options.overrides = changes_of(request);
  options.overrides.insert(options.overrides.end(), more.begin(), more.end());
  auto study = sweep::parse_study(study_, "study", "/shardscape/study", catalog, options);
  if (study) return *std::move(study);
  std::vector<std::string> problems;
  for (const yaml::Diagnostic& problem : study.error().list()) problems.push_back(yaml::to_string(problem));
  throw Refused(std::move(problems));
}

Json Answers::load(const Json& request) {
  const fs::path root = "/shardscape";
  for (const auto& [name, content] : request.at("files").items()) {
    const fs::path file = root / fs::path(name).relative_path();
    fs::create_directories(file.parent_path());
    std::ofstream(file) << content.get<std::string>();
  }
  study_ = request.at("files").at(request.at("study").get<std::string>()).get<std::string>();
  shown_path_ = request.at("shown").get<std::string>();
  shown_ = request.at("files").at(shown_path_).get<std::string>();
  presets_ = yaml::Catalog({root / "presets"});
  kept_.reset();
  const sweep::Study& study = with_evidence(request);
  return {{"title", study.title},
          {"phase", name_of(study.phase())},
          {"model", study.model_name},
          {"cluster", study.cluster_name},
          {"stack", study.stack_name},
          {"device", study.systems.front().device.name},
          {"gpus", study.gpus},
          {"points", study.design_space().size()},
          {"assumptions", study.assumptions}};
}

Json Answers::fields(const Json& request) const {
  const sweep::Study study = changed(request, yaml::Catalog());
  const sweep::ChosenPoint point = chosen(request, study);
  const yaml::Node root = tree(study_, request);
  return fields_json(study, *root.find("workload"), point.setting, point.plan);
}

yaml::Node Answers::tree(const std::string& text, const Json& request) const {
  yaml::Node root = from_json(Json::parse(text), {std::make_shared<const std::string>(shown_path_), 0, 0});
  yaml::Diagnostics ignored;  // the study was read with the same changes before
  for (const std::string& change : changes_of(request)) sweep::apply_override(root, change, ignored);
  return root;
}

const sweep::Study& Answers::with_evidence(const Json& request) {
  if (!kept_ || kept_changes_ != changes_of(request)) {
    kept_.reset();
    kept_ = changed(request, presets_);
    kept_changes_ = changes_of(request);
  }
  return *kept_;
}

Json Answers::predict(const Json& request) {
  const sweep::Study& study = with_evidence(request);
  const sweep::ChosenPoint point = chosen(request, study);
  const ParallelPlan& plan = point.plan;
  const bool operators = request.value("operators", false);
  Details details;
  details.want_schedule = study.phase() == Phase::training && request.value("schedule", false);
  details.want_load_mixes = operators;
  Simulator simulator(point.setting, {.time_infeasible = true, .mode = study.mode});
  const Prediction prediction = simulator.run(plan, {}, &details);
  const cli::PlacementReport placement =
      plan.disaggregated() ? cli::PlacementReport()
                           : cli::study_placement(point.setting, plan, details, {}, false, false);
  const cli::PointRemarks remarks = cli::remarks_on(study, point.setting, plan, prediction, point.at);
  const cli::SimulatedPoint simulated{study, point.setting, plan, prediction, details, placement, remarks};
  Json told = cli::to_json(simulated);
  if (operators) told["operators"] = cli::operators(simulated).json();
  if (operators) told.update(cli::load_mix_json(prediction, details.load_mixes));
  Json json = {{"prediction", std::move(told)},
               {"point", sweep::to_point_text(plan, study.phase())},
               {"gpus", study.gpus_of(point.at)},
               {"yaml", yaml::emit(tree(shown_, request))}};
  if (details.schedule && prediction.has_times()) json["schedule"] = schedule_json(*details.schedule);
  return json;
}

Json Answers::worth(const Json& request) {
  const sweep::Study& study = with_evidence(request);  // kept: a page asks for a few numbers at a time
  const sweep::ChosenPoint point = chosen(request, study);
  const double share = request.value("share", 0.05);
  if (!(share > 0 && share < 1)) throw Refused({"share: must be above 0 and below 1"});
  const auto keys = request.at("keys").get<std::vector<std::string>>();
  const auto asked = [&](std::string_view key) { return std::ranges::find(keys, key) != keys.end(); };
  return cli::to_json(worth_of_numbers(study, point.setting, point.plan, {.mode = study.mode}, share, asked));
}

Json Answers::sweep(const Json& request) const {
  const sweep::Study study = changed(request, yaml::Catalog());
  const sweep::DesignSpace space = study.design_space();
  if (!space.problem().empty()) throw Refused({"space: " + space.problem()});
  std::vector<sweep::Constraint> constraints;
  for (const std::string& text : study.space.constraints)
    constraints.push_back(sweep::Constraint::parse(text).value());
  // Points of the first setting alone: what a row of another one stands for, its plan would not say.
  const std::uint64_t settings = study.setting_count() / study.gpu_counts.size();
  const std::uint64_t total = space.points_on(0).second / settings;
  const auto from = request.at("from").get<std::uint64_t>();
  const std::uint64_t end = std::min(total, from + request.at("count").get<std::uint64_t>());
  const Setting setting = study.setting(0);
  Simulator simulator(setting, {.mode = study.mode});
  const results::LimitCheck limits(results::ColumnTable(study.phase(), {}, study.extras()), study.limits);
  Json json = {{"total", total}, {"settings", study.setting_count()}, {"rows", Json::array()}};
  for (std::uint64_t id = from; id < end; ++id) {
    const ParallelPlan plan = space.point(id).plan;
    const auto holds = [&](const sweep::Constraint& one) { return one.holds(plan, setting.workload); };
    Json row = {{"id", id}, {"point", sweep::to_point_text(plan, study.phase())}};
    if (!std::ranges::all_of(constraints, holds)) {
      row["status"] = name_of(Status::constraint);
    } else {
      const Prediction prediction = simulator.run(plan);
      const bool missed = prediction.status == Status::ok && !study.limits.empty() &&
                          !limits.misses({0, plan, setting.workload, {}, prediction}).empty();
      row["status"] = name_of(missed ? Status::missed : prediction.status);
      if (prediction.status == Status::ok && !missed) {
        row["time_s"] = prediction.whole(study.phase()).value();
        row["memory_bytes"] = prediction.memory_peak.value();
        row["tokens_per_s_per_gpu"] = prediction.tokens_per_s_per_gpu;
      }
    }
    json["rows"].push_back(std::move(row));
  }
  if (end < total) json["next"] = end;
  return json;
}

}  // namespace shardscape::explorer
