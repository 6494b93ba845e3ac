// Settings for servers of experts need a model with experts, and plans that deal these over ranks.
#pragma once

#include "engine/spec/workload.h"
#include "sweep/study/study.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

/// Reports settings of a stack or of hardware axes that no plan of the study's space has a use for. `root`: the study.
void check_served_experts(const Study& study, Phase phase, const yaml::Node& root, yaml::ReadState& state);

}  // namespace shardscape::sweep
