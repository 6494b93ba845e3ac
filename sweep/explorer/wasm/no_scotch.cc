// Placements are not searched for in a browser, so that Scotch is not there.
#include "sweep/placement/scotch_placement.h"

namespace shardscape::placement {

std::optional<network::Placement> scotch_placement(const network::Fabric& /*fabric*/,
                                                   const network::PlacementDemand& /*demand*/) {
  return std::nullopt;
}

}  // namespace shardscape::placement
