// The optimiser behind `simulate --optimise-placement`: all the starts there are, then the engine's search.
#pragma once

#include "engine/network/placement_search.h"

namespace shardscape::placement {

/// Starts from the plain order, the regular placements and Scotch's. Deterministic; never worse than the
/// plain order. plan.gpus() must be the fabric's ranks. Safe to call from several threads; they wait for each
/// other while Scotch runs.
network::PlacementResult optimise_placement(const network::Fabric& fabric, const ParallelPlan& plan,
                                            const network::PlacementDemand& demand,
                                            const network::PlacementSearch& search = {});

}  // namespace shardscape::placement
