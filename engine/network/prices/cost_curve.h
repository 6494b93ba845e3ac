// The network time of one operation with one algorithm, as a function of its bytes.
//
//     T(bytes) = max( sum over stages of  max over lines and rings of the stage,  contended parts )
//
// Lines are affine in bytes. Rings are evaluated by ring_time.h. A contended part is a set of groups whose
// flows share links in ways that no formula covers. Where certified bounds enclose its time to within the
// caller's tolerance, or it has more than kMostSimulatedMessages messages, its upper bound stands for it;
// where the upper bound lies below the rest, it does not matter; else it is simulated at the bytes asked for.
//
// Bounds of a contended ring of S steps with messages of c bytes: at any time a flow has at least the rate
// 1/shared and at most 1/alone (flow_set.h), and the recursion of ring_time.h is monotone in the w, so
//
//     T_alone(c)  <=  T(c)  <=  T_shared(c),   and   T(c) >= S c max(shared) + least latency,
//
// for the most loaded link has n S c bytes to carry. T_shared is at most the longest window of latencies
// plus S c max(shared), and each of the two is at most T: the upper bound is never more than twice the truth.
//
// Bounds of one round in which flow f sends w_f B bytes, with those of flow_set.h: no flow is slower than its fair
// share, and no link carries more than its bandwidth,
//
//     max over f of (latency_f + w_f B alone_f),  max over links l of (least latency on l + B sum of w on l / b(l))
//         <=  T(B)  <=  max over f of (latency_f + w_f B shared_f)
//
// They meet where the flows that take longest are rigid: in exchanges among all ranks of like links. A round that
// they do not enclose is simulated once: rates don't depend on bytes, and latency occupies no link, so that every
// flow drains in proportion to B.
//
// Bounds of dimension-wise stages k = 1, 2, ..: the sum of the stages' upper bounds (later entries never let
// a stage last longer), and for each k
//
//     T(c) >= sum over j < k of (S_j c_j min(alone_j) + least latency_j)
//           + S_k c_k max(shared_k) + least latency_k
//           + sum over j > k of S_j (c_j min(alone_j) + least latency_j)
//
// for nobody leaves stage j sooner than its first member's chunks can come, the busiest link of stage k has
// all its bytes to carry after that, and what its last receiver passes on walks round every later ring.
//
// Another one takes stage 1 in full. All its members begin at once, on links that no other stage uses before these are
// through (the last one of an all-reduce comes back over them, which can only make it longer), so that it takes T_1, or
// T_alone where its rings are contended. Its last receiver enters stage 2 then, its first message there walks S_2 hops
// further, message by message, and whom it reaches has that as the last one of S_2 and enters stage 3, and so on:
//
//     T(c) >= T_1(c_1) + sum over j > 1 of S_j (c_j min(alone_j) + least latency_j)
//
// Only where this meets the upper bound up to rounding nothing is simulated, so that it moves no time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/network/prices/flow_set.h"
#include "engine/network/prices/priced_network.h"
#include "engine/network/prices/ring_time.h"

namespace shardscape::network {

/// A time that is affine in bytes.
struct AffineCost {
  double latency = 0;  ///< seconds
  double seconds_per_byte = 0;
  [[nodiscard]] double at(double bytes) const { return latency + seconds_per_byte * bytes; }
  friend bool operator==(const AffineCost&, const AffineCost&) = default;
};

/// Keeps the lines that are the largest somewhere on bytes >= 0, in order of rising slope.
std::vector<AffineCost> upper_envelope(std::vector<AffineCost> lines);

/// The most messages of a contended part that is still simulated: about 20 ms.
constexpr double kMostSimulatedMessages = 1 << 15;

/// Chunks that an algorithm with chunks cuts its buffer into: NCCL's slices of 512 KiB (a buffer of 4 MiB in
/// 8 steps: NCCL_BUFFSIZE, NCCL_STEPS), at most 32, from where on the fill of the pipeline is below 3 %.
std::int32_t chunks_of(Operation operation, Algorithm algorithm, double bytes);

/// The parts that a curve consists of.
struct CurveParts {
  struct Stage {
    double share = 1;  ///< bytes of a message, relative to those of the operation
    std::vector<AffineCost> lines;
    std::vector<RingTime> rings;
    double steps = 0;  ///< messages that a member of a ring sends one after the other; 0 where it is none
    /// Of stages whose rings are not all alike: each kind of those that keep step, also of those of which `lines` tell,
    /// and their number. In upper bounds none where some do not.
    struct Kind {
      RingTime ring;
      std::size_t number = 0;
    };
    std::vector<Kind> kinds = {};
    /// The time of the stage in seconds; 0 where there are no lines and no rings.
    [[nodiscard]] double at(double bytes) const;
    /// at(), where each message of a ring takes `step` seconds beside the latency of its links.
    [[nodiscard]] double at(double bytes, double step) const { return at(bytes) + steps * step; }
    /// Seconds after which it follows the same stage of an equal call, from which its members are `gap` seconds away
    /// (RingTime::period()); each call goes through it so many times.
    [[nodiscard]] double period(double bytes, double step, double gap, int passes) const;
  };
  struct Contended {
    Pattern pattern;  ///< without bytes and chunks, which are filled in
    double messages = 0;
    /// Bounds; each is a sum of stages; upper is empty where there is no bound.
    std::vector<Stage> lower, upper;
    /// Another lower bound, for at() alone: the first of several stages, then once round each later one; or empty.
    std::vector<Stage> in_turn;
    /// Set where `pattern` has no groups yet: makes, from all siblings, one pattern for each class of components.
    std::function<std::vector<Pattern>(PricedNetwork&)> split;
    /// All messages start at once: one simulation tells the time for all bytes (PricedNetwork::drains).
    bool one_round = false;
  };

  std::vector<Stage> stages;
  std::vector<Contended> contended;
  bool cut_off = false;  ///< dead links leave some pair without a route; all else is meaningless then
  LinkSet links;         ///< links that carry anything; empty where the maker was not asked for them
};

/// A cost curve. Copies share the parts, which never change, but each keeps its own simulations: one copy per thread.
class CostCurve {
 public:
  using Stage = CurveParts::Stage;
  CostCurve() : CostCurve(CurveParts()) {}
  explicit CostCurve(CurveParts parts);

  [[nodiscard]] bool cut_off() const { return parts_->cut_off; }
  [[nodiscard]] const LinkSet& links() const { return parts_->links; }
  [[nodiscard]] const std::vector<CurveParts::Contended>& contended() const { return parts_->contended; }
  [[nodiscard]] bool is_affine() const { return affine_.has_value(); }
  [[nodiscard]] const AffineCost& affine() const { return *affine_; }
  /// Whether the curve is exact (up to rounding) for all bytes without a simulation.
  [[nodiscard]] bool needs_no_simulation() const { return parts_->contended.empty(); }

  /// The time in seconds. `network`: the one that the curve was made for, or one like it, in the same state.
  /// `tolerance`: relative, for bounds that may stand for a simulation.
  [[nodiscard]] double at(double bytes, PricedNetwork& network, double tolerance);
  /// A call of a row of equal ones.
  struct InRow {
    double step = 0;              ///< seconds that each message takes beside the latency of its links
    Gaps gaps;                    ///< what lies before the calls of a cycle
    double healthy = 0, now = 0;  ///< seconds of a call on healthy links, and on these: at()
    friend bool operator==(const InRow&, const InRow&) = default;
  };
  /// Seconds by which such a call follows an equal one sooner than it ends, as its rings tell. Empty where the curve
  /// has no rings, unless `one_way`: each dimension is gone through once. Calls are run (row_of_calls.h) where rings
  /// keep step and members are few, with the slow hops of one line at a time; where several lines are slow, no more is
  /// saved than by any of them and than follows. Elsewhere, `one_way`, members that a slow ring makes late find the
  /// messages of the other stages waiting, and only they are late: half of what is added is saved at most. Else the
  /// stages on the way back are those on the way there, the last one the first: both are one ring that is gone through
  /// twice, and it follows when the others are over, but no sooner than without them. Of contended rings that of their
  /// upper bound.
  [[nodiscard]] std::optional<double> saved_in_row(double bytes, const InRow& row, bool one_way) const;
  /// A lower bound of at(), found without a simulation.
  [[nodiscard]] double at_least(double bytes) const;

 private:
  /// For each contended part, the input of its simulations and their results.
  struct Simulated {
    std::vector<Pattern> classes;  ///< made by `split`
    std::optional<Stage> drained;  ///< for one round: one simulation gives the times for all bytes
  };
  double simulated(std::size_t part, double bytes, PricedNetwork& network);

  std::shared_ptr<const CurveParts> parts_;
  std::optional<AffineCost> affine_;  ///< the whole curve, if it is one line
  std::vector<Simulated> simulated_;  ///< index: contended part; made with the first simulation
};

}  // namespace shardscape::network
