// How long the steps of a ring take when every hop has a rate of its own that never changes.
//
// Member i sends `steps` messages of c bytes to its successor over hop i, one after the other; message s may
// leave when message s-1 of the predecessor has been received. With w_i = c * seconds_per_byte_i, message
// (i, s) has drained at
//
//     d(i, s) = max(d(i-1, s-1) + latency_{i-1}, d(i, s-1)) + w_i,      d(., -1) = 0,
//
// and is received latency_i later: a recursion over (max, +). Its solution is the longest path through the
// messages. A path of S = steps messages walks over a window W of successive hops and spends the messages
// that it does not walk on waiting behind one hop of the window, best the one with the largest w:
//
//     T(c) = max over v, W of  S c v + sum over k in W of (latency_k + c (seconds_per_byte_k - v))
//
// where v runs over the rates of hops and W over the windows of 1 .. S hops (the ring may be gone round more
// than once) that hold a hop no faster than v. With one common rate the second term is the latency of the
// slowest window of S hops: T is affine in c.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardscape::network {

struct Hop {
  double latency = 0;           ///< seconds
  double seconds_per_byte = 0;  ///< > 0
  friend bool operator==(const Hop&, const Hop&) = default;
};

/// The time of a ring. Copies share the hops, which never change.
class RingTime {
 public:
  /// `hops` in the order of the ring; steps >= 1.
  RingTime(std::span<const Hop> hops, int steps);

  /// Seconds until the last receipt if all members begin at once. O((hops + steps) * distinct rates), or O(1) if
  /// is_affine().
  [[nodiscard]] double at(double message_bytes) const;

  [[nodiscard]] bool is_affine() const { return rates_.size() == 1; }
  /// Whether the ring consists of these hops, in this order.
  [[nodiscard]] bool is_of(std::span<const Hop> hops) const;
  [[nodiscard]] int steps() const { return steps_; }

 private:
  [[nodiscard]] double best_window(double message_bytes, double seconds_per_byte) const;

  /// Hops by kind, since rings of a large fabric have many hops of a few kinds.
  struct Hops {
    std::vector<Hop> kinds;           ///< distinct hops, in the order in which they are first met
    std::vector<std::uint32_t> kind;  ///< index: hop; its place in `kinds`
  };
  std::shared_ptr<const Hops> hops_;
  int steps_;
  std::vector<double> rates_;  ///< distinct seconds per byte
  double latency_ = 0;         ///< if affine: latency of the slowest window, seconds
};

}  // namespace shardscape::network
