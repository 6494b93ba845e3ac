// The functions that read the parts of a network case.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/network/collectives/patterns.h"
#include "engine/network/fabric/fabric.h"
#include "engine/spec/fault.h"
#include "sweep/network_case/json_reader.h"
#include "sweep/network_case/network_case.h"

namespace shardscape::network_case {

/// Reads the `topology` of a case; empty where it has problems.
std::optional<FabricSpec> read_topology(const JsonReader& topology, const CaseLimits& limits,
                                        Problems& problems);

/// Reads the `faults` of a case.
FaultSet read_faults(const JsonReader& faults, const network::Fabric& fabric);

/// Reads one of the `patterns`, an object; empty where its operation is unknown. Malformed lists of ranks become empty
/// lists, and malformed sends become impossible ones, so that places keep their indices. Does not check that the
/// pattern can run.
std::optional<network::Pattern> read_pattern(const JsonReader& pattern);

}  // namespace shardscape::network_case
