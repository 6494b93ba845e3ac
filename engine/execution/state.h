// Where ranks, lanes and channels stand in the course of an execution.
#pragma once

#include <cstdint>

#include "engine/execution/fifo.h"

namespace shardscape::execution {

struct RankState {
  std::size_t position = 0;              ///< next block of its sequence
  std::int32_t next = 0, block_end = 0;  ///< instructions
  double clock = 0;                      ///< of the device, seconds; may be ahead of the events
  double host = 0;                       ///< when the host has launched all that it was given
  bool blocked = false;                  ///< on `next`
  bool done = false;
};

/// Calls of one rank on one lane. Of lanes that take turns (Programs::turns) only the first one's state is used, but
/// for `entered`, which is each lane's own.
struct LaneState {
  struct Pending {
    double time = 0;  ///< when it was started
    std::int32_t lane = 0, call = 0, repeats = 0;
  };
  Fifo<Pending> pending;
  bool busy = false;
  std::int32_t lane = 0, call = 0;  ///< while busy
  std::int32_t entered = 0;         ///< calls so far
  double begun = 0;                 ///< while busy: the call
  double free_since = 0;            ///< while not busy

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
  Fifo<Arrival> arrivals;  ///< received, not yet taken

  void reset() {
    sender = receiver = -1;
    sent = received = 0;
    last_receipt = 0;
    arrivals.clear();
  }
};

}  // namespace shardscape::execution
