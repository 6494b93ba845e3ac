// The places where faults of each kind can fall on a fabric.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/network/fabric.h"
#include "sweep/faults/fault_study.h"

namespace shardscape::sweep {

/// One thing that can break.
struct FaultPlace {
  std::int32_t link = -1;           ///< of a link: its id (the lower one where it has two directions)
  std::int32_t device = -1;         ///< rank of a device, lowest rank on an adapter, vertex of a switch
  std::vector<std::int32_t> links;  ///< directed links that the fault touches
};

/// The places of one kind, in a fixed order; empty where the fabric has none.
///   links     the physical links: both directions together, or each alone under one_way
///   devices   the ranks
///   adapters  of each GPU in the scale-out dimensions, or in the outermost where there are none: its own
///             links there; GPUs that share an adapter lose it together, a GPU with several loses all
///   switches  vertices that are neither ranks nor adapters
std::vector<FaultPlace> fault_places(FaultKind kind, const FaultStudy& study, const network::Fabric& fabric);

/// The physical links between two vertices, either way; empty where there is none. Ids of one direction.
std::vector<std::int32_t> links_between(const network::Fabric& fabric, std::int32_t a, std::int32_t b);

}  // namespace shardscape::sweep
