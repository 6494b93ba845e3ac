// The first study of a user: the text of a short one, with a comment on every key, for a model on a number of GPUs.
#pragma once

#include <cstdint>
#include <string>

#include "engine/spec/model.h"
#include "engine/spec/phase.h"
#include "sweep/yaml/preset_specs.h"

namespace shardscape::sweep {

/// What the study is of. References are what the study shall name: names of presets, or paths from its folder.
struct Starter {
  const ModelSpec& model;
  const yaml::Cluster& cluster;
  std::int64_t gpus = 0;  ///< a number that the cluster comes in
  Phase phase = Phase::training;
  std::string model_reference, cluster_reference, stack_reference;
};

/// The text. Every axis has the values that are worth trying: tensor groups inside a node, numbers of stages that divide
/// the layers, ranks that divide the experts; replicas fill what is left. Each such study has some hundreds or thousands
/// of points.
std::string starter_text(const Starter& starter);

}  // namespace shardscape::sweep
