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
//
// Of equal calls in a row not all members enter together: those behind a slow hop are late, and the others' messages
// are under way meanwhile. Let each member be busy for g seconds from the end of one call to its entry into the next.
// After the first calls all members keep their distance, and a call follows the one before it after the greatest mean
// weight of a cycle of who waits for whom (Baccelli et al. 1992, "Synchronization and Linearity", theorem 3.17). A path
// through a call has S messages, the last of which takes it to another member; with R the time once round the ring, s
// and t the w of the slowest hop and of the slowest other one, the cycles are
//
//     S s                                        the slow hop is never idle
//     g + S R / n                                always on to the next member
//     g + R + (S - n) s                          once round in a call, waiting at the slow hop (S >= n)
//     g + (R + (S - 1) s + (S - n + 1) t) / 2    once round in two calls, waiting before the slow hop in the first one
//                                                and before the other in the second
//     g + (R + (S - 1) p + (S - n + 2) f) / 3    once round in three calls, waiting before two neighbouring hops of p
//                                                together in the first two; f is the w of the fastest hop
//
// Where members are busy for different times between calls, as in a layer, a cycle may wait at a hop in calls that
// follow soon and go on to the next member in others, so that the mean of g does not tell: see row_of_calls.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/network/prices/row_of_calls.h"

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
  /// Seconds after which a call follows an equal one before it. Each message takes `step` seconds beside the latency of
  /// its hop, a call takes its steps so many times, and each member is busy for `gap` seconds in between. For rings of
  /// n - 1 steps or more. O(1).
  [[nodiscard]] double period(double message_bytes, double step, double gap, int passes = 1) const;
  /// The hops, with so many seconds beside the latency of each.
  [[nodiscard]] std::vector<HopTime> hop_times(double message_bytes, double step) const;

  [[nodiscard]] bool is_affine() const { return rates_.size() == 1; }
  [[nodiscard]] bool of_equal_hops() const { return hops_->kinds.size() == 1; }
  /// Whether the ring consists of these hops, in this order.
  [[nodiscard]] bool is_of(std::span<const Hop> hops) const;

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
  Hop round_;                  ///< the sum of all hops
  // Seconds per byte of the slowest hop, the slowest other one, the fastest, and the slowest two neighbours together.
  double slowest_ = 0, second_ = 0, fastest_ = 0, neighbours_ = 0;
};

}  // namespace shardscape::network
