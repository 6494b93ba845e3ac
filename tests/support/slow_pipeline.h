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

/// 0 forward, 1 backward, 2 weight; layer, microbatch.
using SlowNode = std::tuple<int, std::int32_t, std::int32_t>;
struct SlowWork {
  std::vector<SlowNode> nodes;  // two of a pair
  double seconds = 0;
};

/// What each stage does, in order.
inline std::vector<std::vector<SlowWork>> works_of_stages(const schedule::PipelineShape& shape,
                                                          const std::vector<schedule::StageTime>& times) {
  const bool dual = shape.kind == ScheduleKind::dualpipe;
  const bool by_chunk = times.size() > static_cast<std::size_t>(shape.stages);
  std::vector<std::vector<SlowWork>> orders(static_cast<std::size_t>(shape.stages));
  std::vector<schedule::PipelineOperation> order;
  for (std::int32_t s = 0; s < shape.stages; ++s) {
    schedule::stage_order(shape, s, order);
    bool with_the_one_before = false;
    for (const schedule::PipelineOperation& op : order) {
      const std::int32_t layer = !dual           ? op.chunk * shape.stages + s
                                 : op.chunk == 0 ? s
                                                 : shape.stages - 1 - s;
      const schedule::StageTime& time =
          times[static_cast<std::size_t>(by_chunk ? shape.virtual_stages * s + op.chunk : s)];
      std::vector<SlowWork>& works = orders[static_cast<std::size_t>(s)];
      if (!with_the_one_before) works.emplace_back();
      works.back().nodes.push_back({op.weight     ? 2
                                    : op.backward ? 1
                                                  : 0,
                                    layer, dual ? 2 * op.microbatch + op.chunk : op.microbatch});
      const double less = !op.paired ? 0 : op.rare ? time.hidden_rarely : time.hidden;
      works.back().seconds += op.weight     ? time.weight
                              : op.cut      ? time.backward - time.weight + time.apart
                              : op.backward ? time.backward
                                            : time.forward - less;
      with_the_one_before = op.paired;
    }
  }
  return orders;
}

/// An operation may start when the stage is free and its input has arrived. The model is a chain of stages x
/// chunks layers, chunk-major: layer c * stages + s is chunk c of stage s. A forward's input is the forward
/// of the layer before; a backward's input is the backward of the layer after, for the last layer its own
/// forward; a weight gradient that was put off needs its own input gradient. A message between two layers takes
/// what `transfer` says of the stages that hold them; a blocking sender is busy until its message has
/// arrived. Dualpipe's chain has a layer per stage, and microbatches of its second chunk, here the odd ones, meet the
/// stages the other way round. What runs in pairs starts and ends together. Of more times than stages each chunk has
/// its own.
inline SlowPipeline slow_pipeline(const schedule::PipelineShape& shape,
                                  const std::vector<schedule::StageTime>& times,
                                  const schedule::Transfer& transfer) {
  using Node = SlowNode;
  const bool dual = shape.kind == ScheduleKind::dualpipe;
  const std::int32_t layers = dual ? shape.stages : shape.stages * shape.virtual_stages;
  const auto sends = [&](const Node& node) {
    if (std::get<0>(node) == 2) return false;
    return std::get<0>(node) == 1 ? std::get<1>(node) > 0 : std::get<1>(node) + 1 < layers;
  };
  /// Between a layer and the next one, which is on the next stage, or on the first where there is no next.
  const auto message = [&](std::int32_t layer, std::int32_t microbatch, bool forward) {
    const bool upward = dual && microbatch % 2 == 1;
    const auto stage = static_cast<std::size_t>(upward ? shape.stages - 2 - layer : layer % shape.stages);
    const bool to_next = forward != upward;
    const std::vector<double>& seconds = to_next || transfer.back.empty() ? transfer.seconds : transfer.back;
    return seconds.size() == 1 ? seconds[0] : seconds[stage];
  };
  const std::vector<std::vector<SlowWork>> orders = works_of_stages(shape, times);
  std::map<Node, double> end;  // when the work of each node ends
  const auto input = [&](const Node& node) {
    const auto [pass, layer, microbatch] = node;
    if (pass == 2) return end[{1, layer, microbatch}];
    if (pass == 1 && layer + 1 == layers) return end[{0, layer, microbatch}];
    if (pass == 1) return end[{1, layer + 1, microbatch}] + message(layer, microbatch, false);
    return layer > 0 ? end[{0, layer - 1, microbatch}] + message(layer - 1, microbatch, true) : 0.0;
  };
  SlowPipeline result{std::vector<double>(orders.size(), 0), 0};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < orders.size(); ++s) {
      double free = 0;
      for (const SlowWork& work : orders[s]) {
        double start = free;
        for (const Node& node : work.nodes) start = std::max(start, input(node));
        const double finish = start + work.seconds;
        free = finish;
        for (const Node& node : work.nodes) {
          double& known = end[node];
          moved = moved || finish > known;
          known = std::max(known, finish);
          const auto [pass, layer, microbatch] = node;
          const std::int32_t boundary = pass == 0 ? layer : layer - 1;
          if (transfer.blocking && sends(node))
            free = std::max(free, known + message(boundary, microbatch, pass == 0));
          free = std::max(free, known);
        }
      }
      result.stage_end[s] = free;
    }
  }
  result.operations = end.size();
  return result;
}

}  // namespace shardscape::test
