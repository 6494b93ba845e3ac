// Parses faults as they are written on the command line.
#pragma once

#include <string>
#include <vector>

#include "engine/spec/fabric_spec.h"
#include "engine/spec/fault.h"

namespace shardscape::cli {

/// Faults out of texts. Of a link: "LINK=DERATE", DERATE the share of the bandwidth that is left: 0 <
/// DERATE <= 1, or 0 or "dead" for none at all; "LINK=DERATE+LATENCY" adds to its latency, too
/// ("0-1=0.5+5us"). LINK is one of
///   A-B, A->B                both directions between two vertices, or one; a vertex is its number or its
///                            name in network::Fabric ("3", "switch 2", "2.leaf 1")
///   DIMENSION: A-B, ...      the same within one dimension; so link names are links
///   a number                 the id of a link: it and its opposite direction
/// Of anything else as fault_parts() says: 0 < SHARE <= 1 of what the kind slows is left; RANK is a GPU or the lowest
/// one of an adapter, SWITCH the number or name of a vertex. Throws BadInput with all that is wrong.
FaultSet parse_faults(const std::vector<std::string>& texts, const FabricSpec& fabric);

/// How faults of other things than links are written: "hbm_derate:RANK=SHARE, ..., switch_down:SWITCH".
std::string fault_parts();

}  // namespace shardscape::cli
