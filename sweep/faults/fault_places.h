// The places where faults of each kind can fall on a fabric.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "sweep/faults/fault_study.h"

namespace shardscape::sweep {

/// A thing that can break.
struct FaultPlace {
  std::int32_t link = -1;           ///< id of a link (the lower one where both directions break together)
  std::int32_t device = -1;         ///< rank of a device, lowest rank on an adapter, or vertex of a switch
  std::vector<std::int32_t> links;  ///< the directed links that the fault affects
};

/// The places of one kind, in a fixed order; empty where the fabric has none.
///   links     the physical links: both directions together, or each alone under one_way
///   devices   the ranks
///   adapters  of each GPU in the scale-out dimensions, or in the outermost where there are none: its own
///             links there; GPUs that share an adapter lose it together, a GPU with several loses all
///   switches  vertices that are neither ranks nor adapters
std::vector<FaultPlace> fault_places(FaultKind kind, const FaultStudy& study, const network::Fabric& fabric);

/// The physical links between two vertices in either direction, as ids of one direction; empty where there are none.
std::vector<std::int32_t> links_between(const network::Fabric& fabric, std::int32_t a, std::int32_t b);

}  // namespace shardscape::sweep
