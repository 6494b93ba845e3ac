// The cost of collectives on a fabric, with every sibling group running at the same time.
//
// Lock-step analysis: in one step of a ring algorithm every rank sends one chunk to its successor. All chunks
// are equal, so under max-min fair sharing the last one arrives after
//
//     max over paths (latency) + chunk * max over links (flows on the link / bandwidth of the link)
//
// (the most loaded link is saturated from start to end, and no flow is slower than that link's fair share).
// Loads are counted on explicit routes, so contention between siblings, hops over foreign ranks and sick
// links are all in.
//
// Algorithms are affine in bytes; the cheapest is taken, as NCCL's tuner does:
//   ring            n-1 steps (all-gather, reduce-scatter) or 2(n-1) (all-reduce) of bytes/n over the whole
//   group; dimension-wise  a ring per fabric axis, the data shrinking by each axis's extent (Cho et al. 2019,
//   BlueConnect), where the group is
//                   a product of per-axis sets.
//
// Left out here: steps of different ranks drifting apart, trees, in-network reduction.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/network/fabric.h"
#include "engine/network/rank_group.h"
#include "engine/spec/fault.h"
#include "engine/spec/stack.h"

namespace shardscape::network {

/// ring_pass: every member sends to its successor, once, the last to the first. chain_pass: neighbours of an
/// open chain send to each other, both ways at once (pipeline stages).
enum class CollectiveOp : std::uint8_t { all_reduce, reduce_scatter, all_gather, ring_pass, chain_pass };

/// A time that is affine in the bytes of the operation.
struct AffineCost {
  Seconds latency;
  double seconds_per_byte = 0;

  [[nodiscard]] Seconds at(Bytes bytes) const { return latency + Seconds(seconds_per_byte * bytes.value()); }
};

/// Costs of one kind of group on one fabric. Pure but for its memo; one object per thread.
class CollectiveModel {
 public:
  /// Both references must outlive the model.
  CollectiveModel(const Fabric& fabric, const StackProfile::Communication& communication);

  /// Costs from now on are those of the fabric with these faults. Throws nothing; ids must exist.
  void set_faults(const FaultSet& faults);

  /// Logical rank i of the groups lies on rank placement[i] of the fabric (see placement.h); empty: on rank
  /// i.
  void set_placement(std::vector<std::int32_t> placement);

  /// Without the memo every call analyses the fabric anew: same results, slowly.
  void use_memo(bool on) { memoise_ = on; }

  /// Time of one operation on each of the sibling groups at once.
  ///   bytes: all_reduce: the buffer; reduce_scatter: the full input; all_gather: the full output; passes:
  ///   one message. calls: the operation is cut into this many collective calls (buckets), each with its own
  ///   fixed cost.
  /// 0 for groups of one rank.
  Seconds time(CollectiveOp op, Bytes bytes, const RankGroup& group, double calls = 1);

 private:
  /// One pass of a ring algorithm over the whole buffer (reduce-scatter or all-gather). The algorithm is
  /// chosen by its healthy cost: a job keeps what it was started with when a link gets sick.
  struct Sweep {
    AffineCost healthy, actual;
  };
  struct GroupCosts {
    std::vector<Sweep> sweeps;  ///< one per algorithm
    AffineCost ring_pass;
    AffineCost chain_pass;
  };
  enum class Pattern : std::uint8_t { ring, chain };
  /// Per link, achieved fraction included.
  struct LinkCosts {
    std::vector<double> seconds_per_byte;
    std::vector<Seconds> latency;
  };

  [[nodiscard]] GroupCosts analyse(const RankGroup& group) const;
  [[nodiscard]] AffineCost step(const RankGroup& group, Pattern pattern, const LinkCosts& links) const;
  [[nodiscard]] std::vector<AffineCost> sweeps(const RankGroup& group, const LinkCosts& links) const;
  [[nodiscard]] bool split_by_axis(const RankGroup& group, std::vector<RankGroup>& factors) const;
  [[nodiscard]] Seconds price(CollectiveOp op, Bytes bytes, const GroupCosts& costs, double calls) const;

  struct GroupHash {
    std::size_t operator()(const RankGroup& group) const;
  };

  const Fabric& fabric_;
  const StackProfile::Communication& communication_;
  LinkCosts healthy_, actual_;  ///< without and with faults
  std::vector<std::int32_t> placement_;
  bool faulty_ = false;
  bool memoise_ = true;
  std::unordered_map<RankGroup, GroupCosts, GroupHash> memo_;
};

}  // namespace shardscape::network
