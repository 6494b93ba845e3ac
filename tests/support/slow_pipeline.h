// An independent evaluator of pipeline schedules: the longest path through the graph of dependencies, by
// relaxation until nothing moves. Slow and plain; knows nothing of waves, periods or arrival tables.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "engine/schedule/pipeline.h"

namespace shardscape::test {

struct SlowPipeline {
  std::vector<double> stage_end;
  std::size_t operations = 0;
};

/// An operation may start when the stage is free and its input has arrived. The model is a chain of stages x
/// chunks layers, chunk-major: layer c * stages + s is chunk c of stage s. A forward's input is the forward
/// of the layer before; a backward's input is the backward of the layer after, for the last layer its own
/// forward. Messages between layers take `transfer`; a blocking sender is busy until its message has arrived.
inline SlowPipeline slow_pipeline(const schedule::PipelineShape& shape,
                                  const std::vector<schedule::StageTime>& times,
                                  schedule::Transfer transfer) {
  using Node = std::tuple<bool, std::int32_t, std::int32_t>;  // backward, layer, microbatch
  const std::int32_t layers = shape.stages * shape.virtual_stages;
  const auto sends = [&](const Node& node) {
    return std::get<0>(node) ? std::get<1>(node) > 0 : std::get<1>(node) + 1 < layers;
  };
  std::vector<std::vector<Node>> orders(static_cast<std::size_t>(shape.stages));
  std::vector<schedule::PipelineOperation> order;
  for (std::int32_t s = 0; s < shape.stages; ++s) {
    schedule::stage_order(shape, s, order);
    for (const schedule::PipelineOperation& op : order) {
      orders[static_cast<std::size_t>(s)].push_back(
          {op.backward, op.chunk * shape.stages + s, op.microbatch});
    }
  }
  std::map<Node, double> end;  // of the work
  SlowPipeline result{std::vector<double>(orders.size(), 0), 0};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < orders.size(); ++s) {
      double free = 0;
      for (const Node& node : orders[s]) {
        const auto [backward, layer, microbatch] = node;
        double start = free;
        if (backward && layer + 1 == layers) {
          start = std::max(start, end[{false, layer, microbatch}]);
        } else if (backward) {
          start = std::max(start, end[{true, layer + 1, microbatch}] + transfer.seconds);
        } else if (layer > 0) {
          start = std::max(start, end[{false, layer - 1, microbatch}] + transfer.seconds);
        }
        const double finish = start + (backward ? times[s].backward : times[s].forward);
        double& known = end[node];
        moved = moved || finish > known;
        known = std::max(known, finish);
        free = known + (transfer.blocking && sends(node) ? transfer.seconds : 0);
      }
      result.stage_end[s] = free;
    }
  }
  result.operations = end.size();
  return result;
}

}  // namespace shardscape::test
