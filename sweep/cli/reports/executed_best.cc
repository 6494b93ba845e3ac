#include "sweep/cli/reports/executed_best.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "sweep/cli/reports/confirm.h"
#include "sweep/cli/reports/search_report.h"
#include "sweep/cli/reports/sweep_progress.h"
#include "sweep/cli/terminal/cpu_time.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

std::string executed_best(const sweep::SweepJob& priced, const sweep::SearchGoal& goal,
                          const ExecutedWish& wish) {
  sweep::Study study = priced.study();
  study.mode = ExecutionMode::flattened;
  const sweep::SweepJob job(study, priced);
  const sweep::SearchGoal first{.count = 1, .objectives = goal.objectives, .within = goal.within};
  if (const std::string why = why_unbounded(job, first); !why.empty())
    return "executed: which plan is best of all is not known, as " + why;
  sweep::SearchOptions options;
  options.hints = sweep::simulator_factory({.reference = wish.reference});
  options.evaluator = sweep::simulator_factory(
      {.reference = wish.reference, .mode = study.mode, .most_events = kMostRowEvents});
  options.threads = wish.threads;
  options.together = wish.together;
  options.may_visit = wish.may_visit;
  options.seek_hints = wish.seek_hints;
  SearchReporter reporter(job, goal.objectives.front(), wish.progress);
  options.go_on = [&](const sweep::SearchProgress& progress) {
    reporter.update(progress);
    return !wish.go_on || wish.go_on();
  };
  const double start = cpu_seconds();
  const sweep::SearchOutcome found = search(job, first, options);
  reporter.close();
  double cpu = cpu_seconds() - start;
  if (wish.together != nullptr) {
    const std::vector<std::string> of_ranks = wish.together->gather(std::to_string(cpu));
    cpu = std::accumulate(of_ranks.begin(), of_ranks.end(), 0.0,
                          [](double sum, const std::string& seconds) { return sum + std::stod(seconds); });
  }
  const auto text = [&](double value) { return objective_text(job, goal.objectives.front(), value); };
  const std::string took =
      fmt::format("{} points executed or known so, {} given up as slower, {} of CPU",
                  format_count(found.visited.size()), format_count(found.given_up), format_duration(cpu)) +
      (found.too_large > 0 ? fmt::format(", {} too large to execute", format_count(found.too_large)) : "");
  if (found.best.empty()) return "executed: no plan is known to have a time; " + took;
  const std::string best =
      fmt::format("point {}, {}", found.best.front().point_id, text(found.best.front().objective));
  if (found.info.complete)
    return fmt::format("executed: {} is the best of all{}, as far as tests show that floors hold; {}", best,
                       goal.within > 0 ? " within " + format_percent(goal.within) : "", took);
  if (std::isnan(found.info.bound)) return "executed: stopped at " + best + "; " + took;
  return fmt::format("executed: stopped at {}; as far as tests show, none is better than {}; {}", best,
                     text(found.info.bound), took);
}

}  // namespace shardscape::cli
