// Reads the `expert_load:` of a workload: how unevenly routers give tokens to experts.
#pragma once

#include <string>
#include <vector>

#include "engine/spec/expert_load.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

/// Reads `balanced`, a map with the keys of ExpertLoad, or a list of these without repetition. Problems go to `state`,
/// under `path`; the list is empty where there are any.
std::vector<ExpertLoad> parse_expert_loads(const yaml::Node& node, const std::string& path,
                                           yaml::ReadState& state);

/// The load as a study writes it.
yaml::Node write_expert_load(const ExpertLoad& load);

/// The load in one line, as a study or an option may give it: "balanced", "{distribution: power_law, exponent: 1.2}".
std::string to_text(const ExpertLoad& load);

}  // namespace shardscape::sweep
