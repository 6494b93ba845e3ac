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
/// forward; zero_bubble's weight gradient needs its own input gradient. A message between two layers takes
/// what `transfer` says of the stages that hold them; a blocking sender is busy until its message has
/// arrived.
inline SlowPipeline slow_pipeline(const schedule::PipelineShape& shape,
                                  const std::vector<schedule::StageTime>& times,
                                  const schedule::Transfer& transfer) {
  using Node =
      std::tuple<int, std::int32_t, std::int32_t>;  // 0 forward, 1 backward, 2 weight; layer, microbatch
  const std::int32_t layers = shape.stages * shape.virtual_stages;
  const auto sends = [&](const Node& node) {
    if (std::get<0>(node) == 2) return false;
    return std::get<0>(node) == 1 ? std::get<1>(node) > 0 : std::get<1>(node) + 1 < layers;
  };
  /// Between a layer and the next one, which is on the next stage, or on the first where there is no next.
  const auto message = [&](std::int32_t layer) {
    const auto stage = static_cast<std::size_t>(layer % shape.stages);
    return transfer.seconds.size() == 1 ? transfer.seconds[0] : transfer.seconds[stage];
  };
  std::vector<std::vector<Node>> orders(static_cast<std::size_t>(shape.stages));
  std::vector<schedule::PipelineOperation> order;
  for (std::int32_t s = 0; s < shape.stages; ++s) {
    schedule::stage_order(shape, s, order);
    for (const schedule::PipelineOperation& op : order) {
      orders[static_cast<std::size_t>(s)].push_back({op.weight     ? 2
                                                     : op.backward ? 1
                                                                   : 0,
                                                     op.chunk * shape.stages + s, op.microbatch});
    }
  }
  std::map<Node, double> end;  // of the work
  SlowPipeline result{std::vector<double>(orders.size(), 0), 0};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < orders.size(); ++s) {
      double free = 0;
      for (const Node& node : orders[s]) {
        const auto [pass, layer, microbatch] = node;
        double start = free;
        if (pass == 2) {
          start = std::max(start, end[{1, layer, microbatch}]);
        } else if (pass == 1 && layer + 1 == layers) {
          start = std::max(start, end[{0, layer, microbatch}]);
        } else if (pass == 1) {
          start = std::max(start, end[{1, layer + 1, microbatch}] + message(layer));
        } else if (layer > 0) {
          start = std::max(start, end[{0, layer - 1, microbatch}] + message(layer - 1));
        }
        const double input_gradient =
            shape.kind == ScheduleKind::zero_bubble ? times[s].backward - times[s].weight : times[s].backward;
        const double work = pass == 2 ? times[s].weight : pass == 1 ? input_gradient : times[s].forward;
        const double finish = start + work;
        double& known = end[node];
        moved = moved || finish > known;
        known = std::max(known, finish);
        const std::int32_t boundary = pass == 0 ? layer : layer - 1;
        free = known + (transfer.blocking && sends(node) ? message(boundary) : 0);
      }
      result.stage_end[s] = free;
    }
  }
  result.operations = end.size();
  return result;
}

}  // namespace shardscape::test
