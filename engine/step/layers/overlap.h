// Decides how much traffic hides, for all users: prices (price_layers.h, price_iterations.h) and programs
// (emit_layer.h).
//
// Traffic hides for no longer than the share of it that the stack lets run beside work, and for no longer than the
// work beside it lasts, less the part of that work that hides other traffic already.
//
// The work beside a call of a tensor group is one operator: the longer one of its neighbours in the order of execution,
// the one before where both last as long. The attention core, which hides the exchange of its context group, what runs
// beside an exchange of experts, and casts hide no such call.
//
// The work beside an exchange of experts is what the other pass of a pair (paired_passes.h) or the other half of a
// batch (two_batches.h) computes meanwhile. The exchange is waited for as soon as the share of it that the stack
// overlaps has been computed, and only then the rest of that work goes on; an exchange that hides altogether is
// waited for behind the work, wherever it ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/schedule/pipeline.h"
#include "engine/spec/scenario.h"
#include "engine/step/layers/layer_parts.h"

namespace shardscape::step {

/// Returns how much of `traffic` hides, if `share` of it may run beside work that has `room` left, and takes that from
/// `room`. All in seconds, as double or Seconds.
template <class Time>
constexpr Time hide(Time traffic, double share, Time& room) {
  const Time hidden = std::min(share * traffic, room);
  room -= hidden;
  return hidden;
}

/// How an exchange of experts and the work beside it lie, in seconds.
struct BesideExchange {
  double hidden = 0;  ///< of the exchange, beside that work
  double until = 0;   ///< the work before the wait for the exchange; infinite: all of it
};
/// `overlap`: the share of the exchange that the stack lets run beside work.
inline BesideExchange beside_exchange(double exchange, double overlap, double work) {
  const double room = overlap * exchange;
  const bool cuts = overlap < 1 && room < work;
  return {std::min(room, work), cuts ? room : std::numeric_limits<double>::infinity()};
}

/// A node with its time, which is 0 for calls, and the index of the node whose work hides it, -1 where none does.
struct TimedNode : Node {
  Seconds time;
  std::int32_t hider = -1;
};
void find_hiders(std::vector<TimedNode>& nodes);

/// The nodes of a part in the order of execution. `time_of(node)`: of a node that is work.
template <class Time>
std::vector<TimedNode> timed_nodes(const std::vector<model::Operator>& operators, LayerPart part,
                                   const Time& time_of) {
  std::vector<TimedNode> list;
  const std::vector<Node> all = nodes(operators, part);
  list.reserve(all.size());
  for (const Node& node : all) list.push_back({node, node.call ? Seconds(0) : time_of(node)});
  find_hiders(list);
  return list;
}

/// Data-parallel traffic beside a pass, in seconds.
struct BesidePass {
  Seconds beyond;  ///< traffic that goes on after the pass has ended
  Seconds lost;    ///< what compute loses while the traffic is under way
  [[nodiscard]] Seconds exposed() const { return beyond + lost; }
};
/// Traffic that takes `traffic` seconds, beside a pass of `pass` seconds.
BesidePass beside_pass(const StackProfile::Communication& stack, Seconds traffic, Seconds pass);
/// Seconds that compute loses to traffic that runs beside it for `together` seconds.
Seconds lost_beside(const StackProfile::Communication& stack, Seconds together);

/// Seconds of the gather of updated weights, added up in the order in which its parts are sent.
struct WeightGather {
  Seconds whole;
  Seconds first_bucket;  ///< that the first layer of the next forward waits for
  void add(Seconds time, double calls) {
    if (whole <= Seconds(0)) first_bucket = (1 / calls) * time;
    whole += time;
  }
};
/// How much of the gather lies beside forwards, in seconds: the part of the first chunk beside its first forward, but
/// never its first bucket; that of each later chunk, which is sent when the chunk before it has run its first
/// microbatch, beside the rest of that chunk's group of microbatches and its own first forward (Megatron Core:
/// overlap_param_gather with virtual stages). Elsewhere all of it beside the first microbatch.
struct HiddenGather {
  Seconds first, later;  ///< of the first chunk, of each later one
  double chunks = 1;     ///< that gather apart
  [[nodiscard]] Seconds all() const { return first + (chunks - 1) * later; }
};
/// `forward`: of one microbatch through all chunks of the stage.
HiddenGather hidden_gather(const StackProfile::Communication& stack, const WeightGather& gather,
                           Seconds forward, const schedule::PipelineShape& shape);

/// Seconds of gradient traffic beside compute: all buckets but the last one may lie beside the last backward of the
/// stage's chunks. Traffic that lies in the bubble of a pipeline, or behind other microbatches, costs compute nothing.
Seconds gradients_beside(const StackProfile::Communication& stack, Seconds all_but_last,
                         Seconds last_backward);

/// Seconds that compute loses to traffic of once a step that runs beside it, as its kernels take SMs.
Seconds lost_once(const System& system, Seconds beside);

}  // namespace shardscape::step
