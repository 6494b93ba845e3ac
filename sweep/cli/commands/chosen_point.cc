#include "sweep/cli/commands/chosen_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <utility>
#include <vector>

#include "engine/simulate.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/top_rows.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/space/constraint.h"
#include "sweep/space/point_text.h"

namespace shardscape::cli {

namespace {

sweep::ChosenPlan plan_of_id(const sweep::Study& study, const sweep::DesignSpace& space, std::uint64_t id) {
  const sweep::PointIndex point = space.point(id);
  return {point.plan, point.setting, study.workload_of(point.setting), ""};
}

}  // namespace

sweep::ChosenPoint point_of_id(const sweep::Study& study, const sweep::DesignSpace& space, std::uint64_t id) {
  return with_setting(plan_of_id(study, space, id), study);
}

std::optional<std::uint64_t> point_id_of(const std::string& text) {
  std::uint64_t id = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, id);
  return !text.empty() && read.ec == std::errc() && read.ptr == end ? std::optional(id) : std::nullopt;
}

sweep::ChosenPlan choose_plan(const sweep::Study& study, const std::string& text, const char* option) {
  if (const std::optional<std::uint64_t> id = point_id_of(text)) {
    const sweep::DesignSpace space = study.design_space();
    if (*id < space.size()) return plan_of_id(study, space, *id);
    throw BadInput(fmt::format("{}: {} is no point: the study has {}, from 0 on", option, *id,
                               counted(space.size(), "point")));
  }
  auto plan = sweep::choose_plan(text, study);
  if (plan) return *std::move(plan);
  std::vector<std::string> problems;
  for (const Problem& problem : plan.error().list())
    problems.push_back(
        fmt::format("{}: {}{}{}", option, problem.field, problem.field.empty() ? "" : ": ", problem.message));
  throw BadInput(std::move(problems));
}

sweep::ChosenPoint choose_point(const sweep::Study& study, const std::string& text, const char* option) {
  return with_setting(choose_plan(study, text, option), study);
}

std::uint64_t best_row(const results::ResultReader& reader, const std::string& name,
                       const std::string& where) {
  if (reader.objectives().empty()) throw BadInput(name + ": names no objective; choose points with --point");
  const std::string by = reader.objectives().front();
  const TopRows found = find_top_rows(reader, {.where = where, .by = by, .per = {}, .front = {}, .count = 1});
  if (found.rows.empty())
    throw BadInput(name + ": no feasible row" + (where.empty() ? "" : " that --where leaves"));
  return reader.point_ids({found.rows.front(), found.rows.front() + 1}).front();
}

std::string point_or_best(const StudyArguments& study, const std::string& point) {
  if (!is_results(study.file) || !study.overrides.empty() || (!point.empty() && !point_id_of(point)))
    return point;
  const results::ResultReader reader = open_results(study.file);
  if (!stored_study(reader))
    throw BadInput(study.file.string() +
                   ": another version of the program wrote it, and this one lists the points of its study "
                   "differently, so that ids mean other plans; give the study in place of the file");
  return point.empty() ? std::to_string(best_row(reader, study.file.string())) : point;
}

StudyArguments for_point(StudyArguments study, const std::string& point) {
  study.one_plan = !point.empty() && !point_id_of(point);
  return study;
}

namespace {

/// The first feasible plan of the study where its first plan is not feasible. Nothing where that is, or where none of
/// the first few thousand is.
std::optional<sweep::ChosenPoint> feasible_start(const sweep::Study& study) {
  constexpr std::uint64_t kMostPlans = 4096;
  std::vector<sweep::Constraint> constraints;
  for (const std::string& text : study.space.constraints)
    if (auto constraint = sweep::Constraint::parse(text)) constraints.push_back(*std::move(constraint));
  const auto is_feasible = [&](Simulator& simulator, const ParallelPlan& plan, const WorkloadSpec& load) {
    const auto holds = [&](const sweep::Constraint& constraint) { return constraint.holds(plan, load); };
    return std::ranges::all_of(constraints, holds) && simulator.judge(plan).status == Status::ok;
  };
  if (const auto chosen = sweep::choose_plan("", study)) {
    const sweep::ChosenPoint first = with_setting(*chosen, study);
    Simulator simulator(first.setting);
    if (is_feasible(simulator, first.plan, first.setting.workload)) return std::nullopt;
  }
  const sweep::DesignSpace space = study.design_space();
  const std::size_t counts = study.gpu_counts.size(), each = study.setting_count() / counts;
  std::uint64_t left = kMostPlans;
  for (std::size_t count = 0; count < counts; ++count) {
    const Setting setting = study.setting(count * each);
    Simulator simulator(setting);
    const auto [from, end] = space.points_on(count);
    for (std::uint64_t id = from; id < from + (end - from) / each && left > 0; ++id, --left)
      if (is_feasible(simulator, space.point(id).plan, setting.workload))
        return point_of_id(study, space, id);
  }
  return std::nullopt;
}

/// Says on stderr that a feasible plan was taken in place of the study's first.
void note_start(const sweep::Study& study, const sweep::ChosenPoint& start) {
  std::cerr << "note: the study's first plan is not feasible; this is the first that is, "
            << sweep::to_point_text(start.plan, study.phase()) << "; --point chooses another\n";
}

}  // namespace

sweep::ChosenPoint opening_point(const StudyArguments& arguments, const sweep::Study& study,
                                 const std::string& point) {
  const std::string text = point_or_best(arguments, point);
  std::optional<sweep::ChosenPoint> start;
  if (text.empty()) start = feasible_start(study);
  if (!start) return choose_point(study, text);
  note_start(study, *start);
  return *std::move(start);
}

void note_other_settings(const sweep::Study& study, const sweep::ChosenPoint& point) {
  const std::size_t counts = std::max<std::size_t>(1, study.gpu_counts.size());
  if (study.setting_count() == 1 || point.at % (study.setting_count() / counts) != 0)
    return;  // chosen by an id
  const std::string on =
      study.gpu_counts.size() > 1 ? fmt::format(" on {} GPUs", study.gpus_of(point.at)) : std::string();
  std::cerr << "note: the study has " << study.setting_count() << " settings; this is the first" << on << " ("
            << describe_setting(study, point.at) << "), --set chooses another\n";
}

}  // namespace shardscape::cli
