#include "sweep/runner/search_cost.h"

#include <chrono>
#include <utility>

namespace shardscape::sweep {

namespace {

constexpr double kMostSeconds = 2;

bool is_searched(const Study& study, std::size_t system) {
  return placement_of(study, system) == PlacementChoice::optimised;
}

}  // namespace

EvaluatorFactory on_plain_order(EvaluatorFactory factory) {
  return [factory = std::move(factory)](const Setting& setting, PlacementChoice) {
    return factory(setting, PlacementChoice::plain);
  };
}

double searched_share(const Study& study) {
  double searched = 0;
  for (std::size_t system = 0; system < study.systems.size(); ++system)
    searched += is_searched(study, system) ? 1 : 0;
  return searched / static_cast<double>(study.systems.size());
}

SearchCost measure_searches(const SweepJob& job, std::span<const std::uint64_t> points,
                            const EvaluatorFactory& factory, std::uint64_t most) {
  SearchCost cost;
  double seconds = 0;
  const auto enough = [&] { return cost.searches >= most || seconds > kMostSeconds; };
  const auto wanted = [&](std::uint64_t setting) {
    return is_searched(job.study(), setting / job.study().workloads.size());
  };
  walk_points(job, points, factory, enough, wanted,
              [&](std::uint64_t, const ParallelPlan& plan, Evaluator& evaluator) {
                const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
                if (evaluator.evaluate(plan).status != Status::ok) return;
                seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
                ++cost.searches;
              });
  if (cost.searches > 0) cost.seconds = seconds / static_cast<double>(cost.searches);
  return cost;
}

}  // namespace shardscape::sweep
