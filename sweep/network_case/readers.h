// The parts of the case reader.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/network/fabric.h"
#include "engine/network/patterns.h"
#include "engine/spec/fault.h"
#include "sweep/network_case/json_reader.h"
#include "sweep/network_case/network_case.h"

namespace shardscape::network_case {

/// `topology` of the case; nothing where it has problems.
std::optional<FabricSpec> read_topology(const JsonReader& topology, const CaseLimits& limits,
                                        Problems& problems);

/// `faults` of the case.
FaultSet read_faults(const JsonReader& faults, const network::Fabric& fabric);

/// One of `patterns`, an object; nothing where its operation is unknown. Malformed lists of ranks are empty
/// and malformed sends impossible, in their place. Whether the pattern can run is another question.
std::optional<network::Pattern> read_pattern(const JsonReader& pattern);

}  // namespace shardscape::network_case
