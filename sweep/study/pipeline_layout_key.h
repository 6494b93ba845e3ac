// Reads the `pipeline_layout:` of a study, which replaces the stack's way to lay layers over pipeline stages: a rule by
// its name (model/partition.h), or a layout written out (spec/pipeline_layout.h).
#pragma once

#include "engine/spec/model.h"
#include "engine/spec/scenario.h"
#include "sweep/space/space_spec.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

inline constexpr const char* kPipelineLayout = "pipeline_layout";

/// Reads the key into the stack.
void read_pipeline_layout(const yaml::Node& node, StackProfile& stack, yaml::Diagnostics& diagnostics);

/// What is wrong with a layout for this model and these plans, and what would be right; empty where nothing is. An axis
/// with `fill` may have any value.
std::string layout_problem(const StackProfile& stack, const ModelSpec& model, const SpaceSpec& space);

}  // namespace shardscape::sweep
