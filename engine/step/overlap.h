// Decides how much traffic hides, for all users: prices (price_training.h, price_iterations.h), programs
// (emit_layer.h), and timelines (export_training.h).
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
#include <span>
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

/// For each node of a part, in the order of execution: the index of the node whose work hides it, or -1 where none
/// does. `seconds`: time of each node, 0 for calls.
std::vector<std::int32_t> hiders(const std::vector<Node>& nodes, std::span<const Seconds> seconds);

}  // namespace shardscape::step
