// Sick links as the command line names them.
#pragma once

#include <string>
#include <vector>

#include "engine/spec/fabric.h"
#include "engine/spec/fault.h"

namespace shardscape::program {

/// "LINK=DERATE", DERATE the share of the bandwidth that is left: 0 < DERATE <= 1, or 0 or "dead" for none at
/// all. LINK is one of
///   A-B, A->B                both directions between two vertices, or one; a vertex is its number or its
///                            name in network::Fabric ("3", "switch 2", "2.leaf 1")
///   DIMENSION: A-B, ...      the same within one dimension; so link names are links
///   a number                 the id of a link: it and its opposite direction
/// Throws BadInput with all that is wrong.
FaultSet parse_faults(const std::vector<std::string>& texts, const FabricSpec& fabric);

}  // namespace shardscape::program
