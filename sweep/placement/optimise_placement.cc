#include "sweep/placement/optimise_placement.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "sweep/placement/scotch_placement.h"

namespace shardscape::placement {

namespace {

using network::Placement;
using network::PlacementCost;

constexpr double kSameTime = 1e-9;  ///< relative: times that differ by less differ only by rounding

/// The placement of the least time; the plain order, which comes first, wins among equals.
const TimedPlacement& fastest(const std::vector<TimedPlacement>& timed) {
  const TimedPlacement& plain = timed.front();
  const Seconds least = std::ranges::min(timed, {}, &TimedPlacement::time).time;
  const TimedPlacement* best = nullptr;
  for (const TimedPlacement& candidate : timed) {
    if (candidate.time > least * (1 + kSameTime) || candidate.time > plain.time) continue;
    if (best == nullptr || candidate.cost < best->cost) best = &candidate;
  }
  return *best;
}

}  // namespace

OptimisedPlacement optimise_placement(const network::Fabric& fabric, const ParallelPlan& plan,
                                      const network::PlacementDemand& demand, const PlacementTime& time,
                                      const network::PlacementSearch& search) {
  // 1. Nominate candidates.
  std::vector<Placement> starts = network::regular_placements(fabric, plan);
  if (auto mapped = scotch_placement(fabric, demand)) starts.push_back(std::move(*mapped));
  const network::PlacementResult found = network::improve_placement(fabric, demand, starts, search);

  // 2. Time each once, the plain order first.
  Placement plain;
  for (std::int32_t rank = 0; rank < fabric.ranks(); ++rank) plain.push_back(rank);
  std::set<Placement> seen = {plain};
  std::vector<TimedPlacement> timed = {{plain, found.plain, time({})}};
  const auto add = [&](const Placement& placement, const PlacementCost& cost) {
    if (seen.insert(placement).second) timed.push_back({placement, cost, time(placement)});
  };
  for (const network::PlacementCandidate& candidate : found.candidates)
    add(candidate.placement, candidate.cost);
  for (const Placement& start : starts) add(start, network::placement_cost(fabric, demand, start));

  // 3. Choose the fastest.
  return {timed.front(), fastest(timed), found.swaps, static_cast<std::int64_t>(timed.size())};
}

}  // namespace shardscape::placement
