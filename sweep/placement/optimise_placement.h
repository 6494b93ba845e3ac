// The optimiser behind `simulate --optimise-placement`: finds candidates by congestion, and chooses among them by time.
//
// Congestion is cheap to keep up to date under swaps, but it is not the time of a step: a collective may use
// another algorithm than rings, a transfer may be hidden behind compute, latency may matter more than
// bandwidth. So the search over swaps only nominates; what it met at low congestion, every regular layout
// (untouched, as hierarchical algorithms want them), Scotch's mapping and the plain order are then timed, and
// the fastest wins.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/base/quantity.h"
#include "engine/network/placement/placement_search.h"

namespace shardscape::placement {

/// Predicts the time of the plan on a placement; an empty placement stands for the plain order. Deterministic.
using PlacementTime = std::function<Seconds(const network::Placement&)>;

struct TimedPlacement {
  network::Placement placement;  ///< never empty
  network::PlacementCost cost;
  Seconds time;
};

struct OptimisedPlacement {
  TimedPlacement plain;
  TimedPlacement best;     ///< never slower than `plain`: the plain order itself where nothing is faster
  std::int64_t swaps = 0;  ///< number of swaps tried
  std::int64_t timed = 0;  ///< number of placements that were timed, the plain order among them
};

/// Among placements of the same time (to 1e-9) the one with the least congestion wins, the plain order before
/// its equals. Deterministic. plan.gpus() must be the fabric's ranks. Safe to call from several threads where
/// `time` is; they wait for each other while Scotch runs.
OptimisedPlacement optimise_placement(const network::Fabric& fabric, const ParallelPlan& plan,
                                      const network::PlacementDemand& demand, const PlacementTime& time,
                                      const network::PlacementSearch& search = {});

}  // namespace shardscape::placement
