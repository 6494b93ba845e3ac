// Decides how much traffic hides, for all users: prices (price_layers.h, price_iterations.h), programs (emit_layer.h),
// and timelines (export_training.h).
//
// Traffic hides for no longer than the share of it that the stack lets run beside work, and for no longer than the
// work beside it lasts, less the part of that work that hides other traffic already.
//
// The work beside a call of a tensor group is one operator: the longer one of its neighbours in the order of execution,
// the one before where both last as long. The attention core, which hides the exchange of its context group, what runs
// beside an exchange of experts, and casts hide no such call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/step/layer_parts.h"

namespace shardscape::step {

/// Returns how much of `traffic` hides, if `share` of it may run beside work that has `room` left, and takes that from
/// `room`. All in seconds, as double or Seconds.
template <class Time>
constexpr Time hide(Time traffic, double share, Time& room) {
  const Time hidden = std::min(share * traffic, room);
  room -= hidden;
  return hidden;
}

/// A node with its time, which is 0 for calls, and the index of the node whose work hides it, -1 where none does.
struct TimedNode : Node {
  Seconds time;
  std::int32_t hider = -1;
};
void find_hiders(std::vector<TimedNode>& nodes);

/// The nodes of a part in the order of execution. `time_of(node)`: of a node that is work.
template <class Time>
std::vector<TimedNode> timed_nodes(const std::vector<model::Operator>& operators, Part part,
                                   const Time& time_of) {
  std::vector<TimedNode> list;
  for (const Node& node : nodes(operators, part))
    list.push_back({node, node.call ? Seconds(0) : time_of(node)});
  find_hiders(list);
  return list;
}

}  // namespace shardscape::step
