// A placement by graph mapping: Scotch (Pellegrini and Roman 1996) maps the graph of who talks to whom,
// weighted with bytes, onto the graph of the fabric by dual recursive bipartitioning, minimising bytes times
// hops.
//
// Scotch knows neither routes nor link loads nor bandwidths here, so its mapping is a start for
// network::improve_placement, not an answer. It keeps random numbers and error state of its own in the
// process; calls are serialised by a mutex and begin from a fixed seed, on one thread and in its
// deterministic mode, so that the same input gives the same placement. That state is why this does not live
// in the engine.
#pragma once

#include <optional>

#include "engine/network/placement/placement.h"

namespace shardscape::placement {

/// Nothing where there is no traffic to map or Scotch refuses. Scotch may double up ranks; those that find
/// their place taken go to the nearest free one. Time and memory grow with the square of the ranks.
std::optional<network::Placement> scotch_placement(const network::Fabric& fabric,
                                                   const network::PlacementDemand& demand);

}  // namespace shardscape::placement
