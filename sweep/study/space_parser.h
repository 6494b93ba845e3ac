// Reads the `space:` of a study: its axes as lists of values, checked against the number of GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/spec/workload.h"
#include "sweep/space/space_spec.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

/// The facts that values of axes depend on; unknown where earlier problems prevent it.
struct SpaceContext {
  std::vector<std::int64_t> gpus;  ///< all numbers of them, ascending; empty: unknown
  std::optional<Phase> phase;
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> experts;        ///< experts per layer; 0: the model is dense
  std::optional<std::int64_t> largest_batch;  ///< largest global batch of the training workloads
};

/// Reads the axes; `node` may be null (no `space:`), and `root` then locates problems of the defaults. Reports axes
/// without effect and degrees that no number of GPUs matches. The result is complete if nothing was reported.
SpaceSpec parse_space(const yaml::Node* node, const yaml::Location& root, const SpaceContext& context,
                      yaml::Diagnostics& diagnostics);

/// The map from which parse_space() reads the same space.
yaml::Node write_space(const SpaceSpec& space, Phase phase);

}  // namespace shardscape::sweep
