#include "engine/step/layers/overlap.h"

namespace shardscape::step {

void find_hiders(std::vector<TimedNode>& nodes) {
  constexpr std::int32_t kNone = -1;
  const auto count = static_cast<std::int32_t>(nodes.size());
  const auto node = [&](std::int32_t i) -> TimedNode& { return nodes[static_cast<std::size_t>(i)]; };
  // Finds the next call or work that takes time; -1 where it can't hide a call.
  const auto neighbour = [&](std::int32_t i, std::int32_t step) {
    for (i += step; i >= 0 && i < count; i += step) {
      const bool core = node(i).op->attention_core;
      if (node(i).call || core || node(i).beside_exchange || node(i).op->cast) return kNone;
      if (node(i).time > Seconds(0)) return i;
    }
    return kNone;
  };
  for (std::int32_t i = 0; i < count; ++i) {
    if (!node(i).call || node(i).comm().group != ParallelGroup::tensor) continue;
    const std::int32_t before = neighbour(i, -1), after = neighbour(i, 1);
    const bool later = before == kNone || (after != kNone && node(after).time > node(before).time);
    node(i).hider = later ? after : before;
  }
}

BesidePass beside_pass(const StackProfile::Communication& stack, Seconds traffic, Seconds pass) {
  Seconds room = stack.data_overlap * pass;
  const Seconds together = hide(traffic, 1, room);
  return {traffic - together, lost_beside(stack, together)};
}

Seconds lost_beside(const StackProfile::Communication& stack, Seconds together) {
  return (1 - stack.data_hidden) * together;
}

HiddenGather hidden_gather(const StackProfile::Communication& stack, const WeightGather& gather,
                           Seconds forward, const schedule::PipelineShape& shape) {
  const double chunks = shape.wraps() ? shape.virtual_stages : 1;
  const Seconds part = 1 / chunks * gather.whole, window = stack.gather_overlap / chunks * forward;
  return {std::min(part - std::min(part, gather.first_bucket), window),
          std::min(part, static_cast<double>(shape.stages) * window), chunks};
}

Seconds gradients_beside(const StackProfile::Communication& stack, Seconds all_but_last,
                         Seconds last_backward) {
  Seconds room = stack.data_overlap * last_backward;
  return hide(all_but_last, 1, room);
}

Seconds lost_once(const System& system, Seconds beside) {
  const double taken = system.stack.communication.data_sms / static_cast<double>(system.device.sm.count);
  return std::min(1.0, taken) * beside;
}

}  // namespace shardscape::step
