// Applies `--set KEY=VALUE`, which changes a study's tree before it is read.
#pragma once

#include <string>

#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

/// Applies one override to the root map of a study. KEY is a dotted path; what follows "hardware." is one key, with its
/// dots. For an axis of named variants VALUE may be the names to keep. All nodes that it sets are located at "--set
/// KEY=VALUE".
void apply_override(yaml::Node& root, const std::string& setting, yaml::Diagnostics& diagnostics);

}  // namespace shardscape::sweep
