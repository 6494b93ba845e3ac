// How far the fluid simulation may be off packet-level ns-3.
#pragma once

#include <algorithm>
#include <limits>

#include "engine/network/flows/flow_simulator.h"

namespace shardscape::network {

inline constexpr double kFairQueueTolerance = 0.02;
inline constexpr double kCongestionControlTolerance = 0.05;
/// Bytes; in shorter messages the hops of the last packet (8 KiB) show.
inline constexpr double kPacketGrain = 256 * 1024;

inline double smallest_message(const Traffic& traffic) {
  double bytes = std::numeric_limits<double>::infinity();
  for (const Message& message : traffic.messages) {
    if (message.bytes > 0) bytes = std::min(bytes, message.bytes);
  }
  return bytes;
}

}  // namespace shardscape::network
