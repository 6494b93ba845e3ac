#include "sweep/placement/optimise_placement.h"

#include <utility>

#include "sweep/placement/scotch_placement.h"

namespace shardscape::placement {

network::PlacementResult optimise_placement(const network::Fabric& fabric, const ParallelPlan& plan,
                                            const network::PlacementDemand& demand,
                                            const network::PlacementSearch& search) {
  std::vector<network::Placement> starts = network::regular_placements(fabric, plan);
  if (auto mapped = scotch_placement(fabric, demand)) starts.push_back(std::move(*mapped));
  return network::improve_placement(fabric, demand, starts, search);
}

}  // namespace shardscape::placement
