// Applies `--set KEY=VALUE`, which changes a study's tree before it is read.
#pragma once

#include <string>

#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

/// Gives the keys of `space:` that are the short names of axes (tp) the names that a study has (tensor_parallel); a
/// problem where both are there.
void name_axes(yaml::Node& root, yaml::Diagnostics& diagnostics);

/// Applies one override to the root map of a study, whose axes get the names of name_axes(). KEY is a dotted path; what
/// follows "hardware." is one key, with its dots. For an axis of named variants VALUE may be the names to keep. All
/// nodes that it sets are located at "--set KEY=VALUE".
void apply_override(yaml::Node& root, const std::string& setting, yaml::Diagnostics& diagnostics);

}  // namespace shardscape::sweep
