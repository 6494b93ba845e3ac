// The `space:` of a study: its axes as lists of values, checked against the number of GPUs.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/spec/workload.h"
#include "sweep/space/space_spec.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

/// What the values of the axes depend on; unknown where other problems stand in the way.
struct SpaceContext {
  std::optional<std::int64_t> gpus;
  std::optional<Phase> phase;
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> experts;        ///< of a layer; 0: the model is dense
  std::optional<std::int64_t> largest_batch;  ///< of the training workloads
};

/// `node` may be null (no `space:`); `root` then locates what is wrong with the defaults. Reports axes
/// without effect and degrees that no number of GPUs matches. The result is complete where nothing was
/// reported.
SpaceSpec parse_space(const yaml::Node* node, const yaml::Location& root, const SpaceContext& context,
                      yaml::Diagnostics& diagnostics);

/// The map that parse_space() reads as the same space.
yaml::Node write_space(const SpaceSpec& space, Phase phase);

}  // namespace shardscape::sweep
