// The state of ranks, lanes and channels in the course of an execution.
#pragma once

#include <cstdint>

#include "engine/execution/fifo.h"

namespace shardscape::execution {

struct RankState {
  std::size_t position = 0;              ///< index of the next block in its sequence
  std::int32_t next = 0, block_end = 0;  ///< instruction to run next, and end of its block
  double clock = 0;                      ///< time of the device in seconds; may be ahead of the events
  double host = 0;                       ///< time at which the host has launched all that it was given
  bool blocked = false;                  ///< waits in instruction `next`
  bool done = false;
};

/// The calls of one rank on one lane. Of lanes that take turns (Programs::turns) only the first lane's state is used,
/// except for `entered`, which each lane has for itself.
struct LaneState {
  struct Pending {
    double time = 0;  ///< time at which it was started
    std::int32_t lane = 0, call = 0, repeats = 0;
  };
  Fifo<Pending> pending;
  bool busy = false;
  std::int32_t lane = 0, call = 0;  ///< valid while busy
  std::int32_t entered = 0;         ///< number of calls entered so far
  double begun = 0;                 ///< time at which the current call began; valid while busy
  double free_since = 0;            ///< time since when no call runs; valid while not busy

  void reset() {
    pending.clear();
    busy = false;
    entered = 0;
    free_since = 0;
  }
};

struct Arrival {
  double issued = 0, received = 0;
};

/// One direction of a channel between two ranks.
struct ChannelState {
  std::int32_t sender = -1, receiver = -1;
  std::int64_t sent = 0, received = 0;
  double last_receipt = 0;
  Fifo<Arrival> arrivals;  ///< received messages that the receiver has not taken yet

  void reset() {
    sender = receiver = -1;
    sent = received = 0;
    last_receipt = 0;
    arrivals.clear();
  }
};

}  // namespace shardscape::execution
