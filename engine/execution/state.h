// The state of ranks, lanes and channels in the course of an execution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscape::execution {

/// A queue in a ring buffer that is kept when it is emptied: no allocation in steady state.
template <class T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  void clear() { first_ = size_ = 0; }
  T& front() { return ring_[first_]; }
  [[nodiscard]] T& operator[](std::size_t i) { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return ring_[(first_ + i) & (ring_.size() - 1)]; }

  void push(const T& value) {
    if (size_ == ring_.size()) grow();
    ring_[(first_ + size_++) & (ring_.size() - 1)] = value;
  }
  T pop() {
    const T value = ring_[first_];
    first_ = (first_ + 1) & (ring_.size() - 1);
    --size_;
    return value;
  }

 private:
  void grow() {
    std::vector<T> larger(ring_.empty() ? 4 : 2 * ring_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    ring_.swap(larger);
    first_ = 0;
  }
  std::vector<T> ring_;  ///< its size is a power of two
  std::size_t first_ = 0, size_ = 0;
};

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
