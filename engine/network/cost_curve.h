// The network time of one operation with one algorithm, as a function of its bytes.
//
//     T(bytes) = max( sum over stages of  max over lines and rings of the stage,  contended parts )
//
// Lines are affine in bytes. Rings are evaluated by ring_time.h. A contended part is a set of groups whose
// flows share links in ways that no formula covers: it is simulated at the bytes asked for, unless its
// certified bounds already agree to 1e-9 or its upper bound lies below the rest. A ring of more than
// kMostSimulatedMessages messages is not simulated either: its upper bound stands for it.
//
// Bounds of a contended ring of S steps with messages of c bytes: at any time a flow has at least the rate
// 1/shared and at most 1/alone (flow_set.h), and the recursion of ring_time.h is monotone in the w, so
//
//     T_alone(c)  <=  T(c)  <=  T_shared(c),   and   T(c) >= S c max(shared) + least latency,
//
// for the most loaded link has n S c bytes to carry. T_shared is at most the longest window of latencies
// plus S c max(shared), and each of the two is at most T: the upper bound is never more than twice the truth.
#pragma once

#include <optional>
#include <vector>

#include "engine/network/flow_set.h"
#include "engine/network/priced_network.h"
#include "engine/network/ring_time.h"

namespace shardscape::network {

/// A time that is affine in bytes.
struct AffineCost {
  double latency = 0;  ///< seconds
  double seconds_per_byte = 0;
  [[nodiscard]] double at(double bytes) const { return latency + seconds_per_byte * bytes; }
};

/// About 20 ms of simulation.
constexpr double kMostSimulatedMessages = 1 << 15;

/// Chunks that an algorithm with chunks cuts its buffer into: NCCL's slices of 512 KiB (a buffer of 4 MiB in
/// 8 steps: NCCL_BUFFSIZE, NCCL_STEPS), at most 32, from where on the fill of the pipeline is below 3 %.
std::int32_t chunks_of(Operation operation, Algorithm algorithm, double bytes);

class CostCurve {
 public:
  struct Stage {
    double share = 1;  ///< bytes of a message over those of the operation
    std::vector<AffineCost> lines;
    std::vector<RingTime> rings;
    /// 0 where there is nothing.
    [[nodiscard]] double at(double bytes) const;
  };
  struct Contended {
    Pattern pattern;  ///< bytes and chunks are filled in
    double messages = 0;
    std::vector<Stage> lower, upper;  ///< bounds, sums of stages; upper is empty where there is none
  };

  std::vector<Stage> stages;
  std::vector<Contended> contended;
  bool cut_off = false;  ///< dead links leave some pair without a way; the rest means nothing then
  LinkSet links;         ///< that carry anything

  /// Collapses to one line where it can be; call when complete.
  void simplify();
  [[nodiscard]] bool is_affine() const { return affine_.has_value(); }
  [[nodiscard]] const AffineCost& affine() const { return *affine_; }
  /// Exact to rounding for all bytes without a simulation.
  [[nodiscard]] bool needs_no_simulation() const { return contended.empty(); }

  /// Seconds. `network` is the one that the curve was made for, in the same state.
  [[nodiscard]] double at(double bytes, PricedNetwork& network) const;

 private:
  std::optional<AffineCost> affine_;
};

}  // namespace shardscape::network
