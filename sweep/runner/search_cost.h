// Measures what searches for optimised placements cost a sweep. The verdict on a point needs none (only plans that are
// ok in plain order are searched), but the time of a feasible point does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "sweep/runner/evaluator.h"
#include "sweep/runner/sweep_job.h"

namespace shardscape::sweep {

/// A factory that evaluates every point in plain order of ranks.
EvaluatorFactory on_plain_order(EvaluatorFactory factory);

/// The share of the study's systems, and so of its feasible points, that need searches: 0..1.
double searched_share(const Study& study);

struct SearchCost {
  std::uint64_t searches = 0;  ///< number of searches measured
  double seconds = 0;          ///< mean CPU seconds of a search; 0 where none was measured
};

/// Measures searches for those of `points` that are ok and need one, one after the other: `most` of them, or as many as
/// fit in some seconds, but at least one if there is any.
SearchCost measure_searches(const SweepJob& job, std::span<const std::uint64_t> points,
                            const EvaluatorFactory& factory, std::uint64_t most = 8);

/// Calls visit(id, plan, evaluator) for each of `points` that the job's constraints admit and whose setting satisfies
/// `wanted(setting)`, until `enough()`.
template <class Enough, class Wanted, class Visit>
void walk_points(const SweepJob& job, std::span<const std::uint64_t> points, const EvaluatorFactory& factory,
                 const Enough& enough, const Wanted& wanted, const Visit& visit) {
  std::optional<std::uint64_t> current;
  std::unique_ptr<Setting> setting;
  std::unique_ptr<Evaluator> evaluator;
  for (const std::uint64_t id : points) {
    if (enough()) return;
    const PointIndex point = job.space().point(id);
    if (!wanted(point.setting) || !job.admits(point.plan, job.workload(point.setting))) continue;
    if (current != point.setting) {
      evaluator.reset();  // before its setting is replaced, which it refers to
      setting = std::make_unique<Setting>(job.study().setting(point.setting));
      evaluator = factory(*setting, placement_of(job.study(), point.setting / job.study().workloads.size()));
      current = point.setting;
    }
    visit(id, point.plan, *evaluator);
  }
}

}  // namespace shardscape::sweep
