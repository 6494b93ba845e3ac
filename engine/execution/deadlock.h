// Explains why programs do not end.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/execution/calls.h"
#include "engine/execution/state.h"

namespace shardscape::execution {

struct StandStill {
  std::span<const RankState> ranks;
  std::span<const LaneState> lanes;  ///< [lane * ranks + rank]
  std::span<const ChannelState> channels;
};

/// One line for each rank that can never go on by itself (its message is never sent, or others never make its call);
/// where all ranks wait for each other, one line for each of them.
std::vector<std::string> explain_deadlock(const Programs& programs, const StandStill& state,
                                          const CallBoard& calls);

}  // namespace shardscape::execution
