// shardscape compare: two plans side by side, and why one is faster.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/base/safe_text.h"
#include "engine/simulate.h"
#include "results_schema/disk/output_file.h"
#include "results_schema/report/page.h"
#include "sweep/cli/command.h"
#include "sweep/cli/commands/chosen_point.h"
#include "sweep/cli/reports/compare_report.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/top_rows.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/runner/sweep_job.h"
#include "sweep/search/best_first.h"
#include "sweep/study/evidence_of.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::cli {

namespace {

constexpr const char* kCompareFooter =
    R"(Examples:
  shardscape compare study.yaml --point tp=8,pp=4,dp=2 --point tp=4,pp=4,dp=4    two plans of a study
  shardscape compare a100.yaml h100.yaml --point tp=8,pp=4,dp=2                  one plan on two machines
  shardscape compare study.yaml --cluster dgx-h100 --cluster dgx-b200 --point tp=8,pp=4,dp=2      the same
  shardscape compare a100.yaml h100.yaml     the best plan of each, which is searched
  shardscape compare a.h5 b.h5               the best row of each of two result files
  shardscape compare out.h5 --point 3439 --point 3051    two rows of a file, by their point ids
  shardscape compare a.h5 b.h5 --where 'tp <= 4' --json
  shardscape compare a.yaml b.yaml --report compare.html     the same as a page

Both plans are predicted anew, healthy and with their ranks in the plain order. The bars lead from A's time to B's and
add up to the difference. 'diff' compares all values of two files of one study; 'simulate --compare' one plan in both
modes of prediction.)";

struct CompareArguments {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> points, overrides, clusters;
  std::string where;
  std::filesystem::path report;
  bool json = false, force = false;
};

bool holds_results(const std::filesystem::path& file) {
  return is_results(file) || std::filesystem::is_directory(file);
}

ComparedPlan of_results(const std::filesystem::path& file, const std::string& point, const std::string& where,
                        const CommonOptions& common) {
  const results::ResultReader reader = open_results(file);
  auto stored = stored_study(reader);
  const std::string name = file.string();
  if (!stored)
    throw BadInput(name +
                   ": another version of the program wrote it, and this one reads its study otherwise");
  yaml::Diagnostics problems;  // a stored study has no evidence of its own
  sweep::attach_evidence(make_catalog(common), stored->study, problems);
  if (!problems.empty()) throw BadInput(problems);
  const std::optional<std::uint64_t> given = point_id_of(point);
  if (!point.empty() && !given) {
    sweep::ChosenPoint chosen = choose_point(stored->study, point);
    return {name, std::move(stored->study), std::move(chosen), {name}};
  }
  const std::uint64_t id = given ? *given : best_row(reader, name, where);
  if (id >= stored->space.size())
    throw BadInput(
        fmt::format("--point: {} has {}, from 0 on", name, counted(stored->space.size(), "point")));
  sweep::ChosenPoint chosen = point_of_id(stored->study, stored->space, id);
  return {fmt::format("{}, point {}", name, id),
          std::move(stored->study),
          std::move(chosen),
          {name},
          std::to_string(id)};
}

ComparedPlan of_study(const std::filesystem::path& file, const CompareArguments& arguments,
                      const std::string* point, const std::string* cluster, const CommonOptions& common) {
  std::vector<std::string> overrides = arguments.overrides;
  if (cluster != nullptr) overrides.push_back("cluster=" + *cluster);
  const StudyArguments own{.file = file, .overrides = overrides};
  sweep::Study study = load(own, common);
  const std::string name = file.string() + (cluster != nullptr ? " on " + *cluster : "");
  if (point != nullptr) {
    sweep::ChosenPoint chosen = choose_point(study, *point);
    note_other_settings(study, chosen);
    return {name, std::move(study), std::move(chosen), words_of(own, common),
            point_id_of(*point) ? *point : ""};
  }
  const sweep::SweepJob job(study);
  require_points(job);
  const sweep::SearchGoal goal{.count = 1, .front = false, .objectives = study.objectives, .within = 0};
  for (const std::string& why : {sweep::why_unbounded(job, goal), sweep::why_too_many_regions(job)})
    if (!why.empty())
      throw BadInput(
          fmt::format("{}: its best plan cannot be searched ({}); choose one with --point", name, why));
  const sweep::SearchOutcome found = sweep::search(job, goal, {});
  if (found.best.empty()) throw BadInput(name + ": no plan is feasible; choose one with --point");
  const std::uint64_t id = found.best.front().point_id;
  sweep::ChosenPoint chosen = point_of_id(study, job.space(), id);
  return {name + ", the best plan", std::move(study), std::move(chosen), words_of(own, common),
          std::to_string(id)};
}

void predict(ComparedPlan& of, const char* name) {
  Simulator simulator(of.point.setting, {.time_infeasible = true, .mode = of.study.mode});
  of.prediction = simulator.run(of.point.plan, {}, &of.details);
  if (sweep::placement_of(of.study, 0) == sweep::PlacementChoice::optimised)
    std::cerr << "note: " << name << "'s ranks lie in the plain order, not where its study would have them\n";
  if (!of.prediction.has_times())
    throw BadInput(fmt::format("{}: {}: {}", name, of.from, describe(name_of(of.prediction.reason))));
}

int run_compare_plans(const CompareArguments& arguments, const CommonOptions& common) {
  const std::size_t files = arguments.files.size(), points = arguments.points.size();
  if (points > 2) throw BadInput("--point: two plans are compared, a third one is too many");
  const std::size_t clusters = arguments.clusters.size();
  if (clusters == 1 || clusters > 2) throw BadInput("--cluster: give it twice, for A and for B");
  if (files == 1 && points < 2 && clusters == 0)
    throw BadInput(
        "--point: give it twice, for A and for B; or name a second study or result file, or two machines "
        "with --cluster");
  const bool any_results = std::ranges::any_of(arguments.files, holds_results);
  if (any_results && clusters > 0)
    throw BadInput("--cluster: changes studies; a result file is of the machine that was swept");
  if (any_results && !arguments.overrides.empty())
    throw BadInput("--set: changes studies; a result file is of the study as it was swept");
  if (!arguments.where.empty() && (!any_results || points > 0))
    throw BadInput("--where: chooses rows of result files, where no --point does");
  std::optional<results::OutputPath> page;
  if (!arguments.report.empty()) page.emplace(arguments.report, arguments.force, arguments.files);
  const auto plan = [&](std::size_t i) {
    const std::filesystem::path& file = arguments.files[std::min(i, files - 1)];
    const std::string* const point = points == 0 ? nullptr : &arguments.points[std::min(i, points - 1)];
    if (holds_results(file))
      return of_results(file, point != nullptr ? *point : std::string(), arguments.where, common);
    return of_study(file, arguments, point, clusters == 0 ? nullptr : &arguments.clusters[i], common);
  };
  ComparedPlan a = plan(0), b = plan(1);
  if (a.study.phase() != b.study.phase())
    throw BadInput(fmt::format("{} is of {}, {} of {}", a.from, name_of(a.study.phase()), b.from,
                               name_of(b.study.phase())));
  predict(a, "A");
  predict(b, "B");
  const Comparison comparison = compare_plans(a, b);
  if (arguments.json) {
    std::cout << json_text(to_json(comparison), 2) << '\n';
  } else {
    print_compared(std::cout, comparison);
  }
  if (page) {
    const std::string title =
        a.study.title == b.study.title ? a.study.title : a.study.title + " and " + b.study.title;
    results::write_output(*page, report::waterfall_page(title, json_text(to_json(comparison))));
    if (!arguments.json) std::cout << "\npage in " << arguments.report.string() << '\n';
  }
  return kDone;
}

}  // namespace

void add_compare_command(const Program& program) {
  const auto [command, arguments] = program.add("compare", "Two plans side by side, and why one is faster",
                                                kCompareFooter, run_compare_plans);
  command->add_option("FILE", arguments->files, "One or two studies (YAML) or result files (OUT.h5)")
      ->required()
      ->expected(1, 2);
  add_value(*command, "--point", arguments->points, "KEY=VALUE,...",
            "A plan, as in simulate, or of a result file the id of a point; twice: A's and B's");
  add_value(*command, "--cluster", arguments->clusters, "CLUSTER",
            "A's machine, and given again B's, in place of the studies'");
  add_value(*command, "--set", arguments->overrides, "KEY=VALUE",
            "Change a setting of the studies; repeatable");
  add_value(*command, "--where", arguments->where, "EXPRESSION",
            "Of result files: the best of these rows, as in top");
  add_json(*command, arguments->json);
  add_value(*command, "--report", arguments->report, "PAGE.html", "Write the comparison as a page, too");
  add_force(*command, arguments->force);
}

}  // namespace shardscape::cli
