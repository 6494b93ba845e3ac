// The cost of collectives on a fabric, with every sibling group running at the same time.
//
//     time = calls * (call + steps * rank_step + C(bytes / calls) + T(bytes / calls))
//
// with rank_step_scale_out for the steps that cross the scale-out network: all of them where a group does, by
// axis for dimension_wise.
//
// C is what a rank needs for its own copies and reductions: local_copy * copied_bytes() * bytes over the peak
// rate of its memory, that of the slowest rank. It adds to T: up to some hundred megabytes a step of NCCL's
// ring is one chunk, so what a rank reads and writes falls between its receipts and its sends. Measured
// all-reduces say so (inside one node of DGX A100 and H100, 1 to 66 MB: median error 11 % if C adds, 21 % if
// only the longer of C and T counts, which is T). Sends and all-to-all wait for no receipt: their copies
// hide behind the wire, as measured sends between two GPUs do.
//
// T is the time that the fluid simulation (flow_simulator.h) of the operation's messages takes on links at
// the stack's achieved share of their bandwidth, all sibling groups at once; `steps` counts the rounds of the
// algorithm that wait for each other (see steps_of). T comes from a cost curve per group, operation,
// algorithm and faults (cost_curve.h, curve_maker.h): formulas where they are exact, simulations memoised by
// bytes elsewhere. All of it is exact to 1e-9 but for contended parts whose upper bound stands for them:
// where lower and upper bounds prove it to be less than tolerance() too long, and where a component has more
// than kMostSimulatedMessages messages (then rings and exchanges are at most twice the truth, dimension-wise
// the sum of such bounds of its stages). Approximations are never too short.
//
// Algorithms are those of the stack's library that suit the group; each call takes the cheapest at its size
// by the time on healthy links, the earlier in the list among equals, as NCCL's tuner does: a job keeps what
// it was started with when a link gets sick. Two further rules keep choice cheap: a group of more than
// kMostDirectRanks is not offered algorithms of n^2 connections, and none is offered whose contended parts
// need more than kMostMessagesToChoose messages without a bound, unless nothing else is left.
// Rings go round in the order of the group or, where the group is a box on ring, mesh, torus, king_mesh or
// hypercube axes, along a Hamiltonian cycle (ring_order.h) if that is cheaper or, at equal cost, crosses
// fewer links: links without latency take what those of any small latency take. Of groups that span domains there are
// as many rings at once as each of them has members in every domain, an adapter for each ring (channel_rings.h), where
// that is cheaper; not where they are boxes of several axes and the library has `dimension_wise`. Their hops are
// unlike, and what the fast ones of them take hides behind the slow ones: rank_step is a part of each hop's latency
// within T (ring_time.h), as in an execution, and `steps` is 0.
//
// Where the stack asks for the protocols of a node and the device has their constants (protocols.h), calls of
// all-reduce, reduce-scatter, all-gather and all-to-all among ranks behind one switch of a node take
//
//     call + the closed form + (T now - T healthy),    at least call + steps * rank_step + C + T,
//
// with T that of `direct`, which puts the same bytes on each rank's link and waits for nothing: sick links and
// throttled memories slow them, and other traffic of a flattened execution does.
//
// expert_dispatch and expert_combine send tokens to the ranks of their experts by kernels of their own (TokenExchange).
// They put a copy of a token on the network for each rank of an NVLink domain that has one of its experts or, where
// groups span several domains, for each domain, and take
//
//     call + the closed form of expert_dispatch.h + (T now - T healthy),   at least call + rank_step + T
//
// with T that of an all-to-all of these copies. A device without constants takes the latter, and so does a stack whose
// kernels keep up with the links (TokenExchange::closed_form). Within a domain of a
// group that spans several the copies are forwarded; where constants between nodes are missing that takes what the
// kernels take inside one domain, beside T.
//
// Where members get unequal shares s of the choices (set_expert_loads()), a copy goes to each with the chance
// 1 - (1 - s)^top_k, those of a domain that others reach over the network in equal parts of the domain's; the closed
// form is that of a call in which every rank has as many as the busiest.
//
// low_latency_dispatch and low_latency_combine likewise, but that they put a copy on the network for each expert of a
// token, and that without constants between nodes they take what an all-to-all of these copies takes.
//
// Dispatch and combine take the algorithm `direct`; inside a node the closed form of an all-to-all as large as the
// busiest rank's share makes it.
//
// Left out: contention between operations of different axes of a plan, contention of copies with kernels that
// compute, protocols between nodes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/network/collectives/collective_op.h"
#include "engine/network/fabric/fabric.h"
#include "engine/network/groups/rank_group.h"
#include "engine/network/groups/slices.h"
#include "engine/network/prices/curve_maker.h"
#include "engine/network/prices/flow_set.h"
#include "engine/network/prices/priced_network.h"
#include "engine/spec/collective_tolerance.h"
#include "engine/spec/fault.h"
#include "engine/spec/node_collectives.h"
#include "engine/spec/stack.h"
#include "engine/spec/token_copies.h"

namespace shardscape::network {

constexpr std::int32_t kMostDirectRanks = 64;
constexpr double kMostMessagesToChoose = 1 << 16;
/// Most curves and prices under faults that a model keeps; some hundred bytes each.
constexpr std::size_t kMostSickPrices = 1 << 17;

/// How an operation is carried out.
struct CollectiveChoice {
  Algorithm algorithm = Algorithm::ring;
  RingOrder ring_order = RingOrder::listed;
  bool in_node = false;       ///< the time follows protocols.h; only the messages are those of the algorithm
  std::int32_t channels = 1;  ///< see Pattern::channels
  friend bool operator==(const CollectiveChoice&, const CollectiveChoice&) = default;
};
/// The choice in words: "ring", "ring along a Hamiltonian cycle", "ring over 8 channels", "dimension_wise", ...
std::string to_string(const CollectiveChoice& choice);

/// The operation as patterns name it; passes are sends from point to point.
Operation operation_of(CollectiveOp op);

/// Rounds of messages that wait for each other, in a group of n ranks:
///   ring, bidirectional_ring   n-1 per pass; broadcast n-1
///   direct                     1 per pass; broadcast 1
///   pairwise                   n-1
///   halving_doubling           log2 n per pass
///   double_binary_tree         ceil(log2 n) up and as many down; broadcast 1 + ceil(log2 (n-1)), down only
///   binary_tree                floor(log2 n)
///   dimension_wise             sum of extent - 1 of the group's box (`extents`), per pass
///   in_network                 2: up to the switches and down again
/// A pass is a reduce-scatter or an all-gather. Chunks follow each other without a pause.
double steps_of(Operation operation, Algorithm algorithm, std::int32_t n,
                std::span<const std::int32_t> extents = {});

/// What one of n ranks reads and writes in device memory, per byte of the operation (see
/// CollectiveModel::time). A rank reads its input once and writes its output once; what it receives is first
/// written to a buffer and then read (NCCL's Simple protocol). In units of the bytes:
///                       input   received    output   sum
///   all_reduce          1       2(n-1)/n    1        6 - 4/n
///   reduce_scatter      1       (n-1)/n     1/n      3 - 1/n
///   all_gather          1/n     (n-1)/n     1        3 - 1/n
///   broadcast                   1           1        3
/// double_binary_tree: a rank with two children receives 2 in an all-reduce (1 of two ranks), in all 6 (4).
/// in_network: a rank receives its result once, and the input is staged where the switches can read it:
/// written and read once more; all_reduce 6, reduce_scatter 3 + 1/n (the result is kept at once), all_gather
/// 3 + 1/n. Sends and all-to-all: 0, their copies hide behind the wire.
double copied_bytes(Operation operation, Algorithm algorithm, std::int32_t n);

class CurveStore;
struct CurveKey;

/// Computes times of collectives. Results depend on nothing but the settings below; memos only save time. One per
/// thread.
class CollectiveModel {
 public:
  /// Both references must outlive the model. `memory_rate`: peak rate of the ranks' memory; it is used
  /// where the stack's local_copy is not 0, and must be above 0 then. `node`: of the device, for stacks with
  /// `protocols`; outlives the model.
  CollectiveModel(const Fabric& fabric, const StackProfile::Communication& communication,
                  BytesPerSecond memory_rate, const NodeCollectives* node = nullptr,
                  const TokenExchange& exchange = {});
  ~CollectiveModel();
  CollectiveModel(CollectiveModel&&) noexcept;

  /// Costs from now on are those of the fabric with these faults (of links; for devices see
  /// set_memory_share()); forgets unreachable(). Throws nothing; ids must exist. Operations that no faulty
  /// link carries keep their healthy price; prices of the others are remembered for each set of faults, up
  /// to kMostSickPrices.
  void set_faults(const FaultSet& faults);
  [[nodiscard]] bool has_faults() const { return !healthy(); }
  [[nodiscard]] const FaultSet& faults() const { return faults_; }

  /// From now on the slowest rank of every group has only this share of its memory's rate, 0 < share <= 1. Algorithms
  /// are still chosen as for healthy ranks.
  void set_memory_share(double share);
  [[nodiscard]] double memory_share() const { return memory_share_; }

  /// While it is on, the links that carry the operations asked for are collected, as their chosen algorithm
  /// uses them on a healthy fabric; of an operation in a slice, those whose soft faults would slow the slice.
  /// Turning it on forgets what was collected. Not for the plain path.
  void record_links(bool on);
  [[nodiscard]] bool records_links() const { return recording_; }
  [[nodiscard]] const LinkSet& recorded_links() const { return recorded_; }
  /// The links collected since the last call, or since recording was turned on.
  [[nodiscard]] LinkSet take_recorded_part();

  /// Whether any of the links is sick.
  [[nodiscard]] bool touched(const LinkSet& links) const;
  /// Whether links are gone, so that messages take other routes.
  [[nodiscard]] bool detours() const;
  /// The same number, above 0, for the same faults of links and for no others in the life of this model. 0: there are
  /// none.
  [[nodiscard]] std::uint64_t fault_epoch() const { return fault_epoch_; }

  /// Logical rank i of the groups lies on rank placement[i] of the fabric (see placement.h); empty: on rank
  /// i. Where the placement is shorter than the fabric, its ranks are all there are.
  void set_placement(std::vector<std::int32_t> placement);

  /// The share of all tokens that each expert gets, in their order; they add up to 1. Members of a group that
  /// dispatches hold equal numbers of them, in order. Empty: equal shares. To be said before times are asked for.
  void set_expert_loads(std::vector<double> shares);
  /// The parts in which such an operation splits its bytes among the members of a group, who divide the experts.
  [[nodiscard]] Skew skew_of(CollectiveOp op, const RankGroup& group) const;

  /// Sets a store of curves and paces, to look them up before making them, and to keep new ones. It must belong to this
  /// fabric and the stack's shares of its links; null: none.
  void share_curves(std::shared_ptr<CurveStore> store);

  /// Without the memo every call analyses the fabric anew: same results, slowly.
  void use_memo(bool on) { memoise_ = on; }
  /// The plain path: every call simulates all groups at its bytes, with no memo and no fast path.
  void use_reference(bool on) { reference_ = on; }

  /// How far bounds may lie above the simulated time that they stand for, relative, >= 1e-9. Forgets all costs.
  void set_tolerance(double tolerance);
  [[nodiscard]] double tolerance() const { return tolerance_; }

  /// Time of one operation on each of the sibling groups at once.
  ///   bytes: all_reduce, broadcast: the buffer; reduce_scatter, all_to_all: the full input; dispatch, combine:
  ///   that of a mean member; all_gather: the full output; passes: one message; exchanges: a copy of each token
  ///   for each expert it goes through. calls: the operation is cut into this many collective calls
  ///   (buckets), each with its own fixed cost.
  ///   slice: a part of the machine that no group leaves, such as a pipeline stage. Only its groups are
  ///   waited for: the time is the healthy one unless a faulty link carries them or groups that contend
  ///   with them (slices.h).
  /// 0 for groups of one rank, and where unreachable() becomes true.
  Seconds time(CollectiveOp op, Bytes bytes, const RankGroup& group, double calls = 1,
               const Slice& slice = {});

  /// Seconds by which faults of links make one such operation longer; 0 where they don't.
  Seconds added_by_faults(CollectiveOp op, Bytes bytes, const RankGroup& group, const Slice& slice = {});

  /// The time() of one call on healthy links.
  Seconds time_without_faults(CollectiveOp op, Bytes bytes, const RankGroup& group);

  /// The part of time_without_faults() that passes at the ranks, to begin and to copy.
  Seconds time_at_ranks(CollectiveOp op, Bytes bytes, const RankGroup& group);
  /// The part of time() on healthy links while messages are on their links: all but what passes at the ranks, to begin
  /// and to copy, and the latency of paths. Only during this part do they slow others.
  Seconds time_on_links(CollectiveOp op, Bytes bytes, const RankGroup& group, double calls = 1);

  /// Time of a combine that follows work of the members in proportion to their loads, `work` for the busiest: how much
  /// later than that work it ends. The others have begun to send before. So it takes at least what the busiest members
  /// take without them, and what all of them take from the earliest possible beginning; the longer of the two stands.
  /// Time that sick links add to the combine is added.
  Seconds late_combine(Bytes bytes, const RankGroup& group, Seconds work, const Slice& slice = {});

  /// Time of one message over each boundary of the groups' chains: entry b is for every b-th member and the
  /// next one, both ways and in all groups at once; the last entry for the last member and the first, 0 where
  /// the chain is not `closed`, and all that dead links cut. Messages over different boundaries do not meet:
  /// the stages of a pipeline send at different times.
  void boundary_times(Bytes bytes, const RankGroup& group, bool closed, std::vector<double>& seconds);

  /// The same without faults, and as if only the groups of the first slice along this axis used the network; never more
  /// than time() on a healthy fabric. Where only a simulation would tell, an upper bound.
  Seconds time_within_slice(CollectiveOp op, Bytes bytes, const RankGroup& group, double calls,
                            RankGroup::Level axis);

  /// The arguments of time().
  struct Asked {
    CollectiveOp op;
    Bytes bytes;
    const RankGroup& group;
    double calls = 1;
  };
  /// The links that carry the operation on a healthy fabric, all siblings at once; not for groups of one rank.
  const LinkSet& links(const Asked& asked);
  /// Some of these links: those of the groups that were looked at, which stand for the others (tiles.h). Needs no
  /// search.
  const LinkSet& tile_links(const Asked& asked);
  /// Whether the two operations use any link in common.
  bool meet(const Asked& one, const Asked& other);
  /// Which groups to look at: all, or only those that stand for the others (tiles.h; not where ranks are placed).
  /// `dimensions`: like `tile`, but each distinct load only once per dimension, with the number of the dimension in
  /// place of the link's; in any order, several per dimension.
  enum class Looked : std::uint8_t { all, tile, dimensions };
  static constexpr std::size_t kLookedAt = 3;
  /// What an operation takes of its links while it sends, healthy and all siblings at once. Valid until the next call.
  const LinkLoads& loads(const Asked& asked, Looked looked = Looked::all);
  /// The share of its own pace that each operation keeps while both send, healthy and all siblings of each at once.
  KeptPaces paces_together(const Asked& one, const Asked& other);
  /// How long the busiest link is busy if each of these operations sends for `sending` seconds (>= 0), healthy and all
  /// siblings of each at once. 0 where no link is busy for longer than `beyond`.
  Seconds busiest_link(std::span<const Asked> operations, std::span<const Seconds> sending, Seconds beyond);

  /// The algorithm that time() takes for these arguments; nothing for passes and groups of one rank.
  std::optional<CollectiveChoice> choice(CollectiveOp op, Bytes bytes, const RankGroup& group,
                                         double calls = 1);

  /// The part of time() that a rank needs for its own copies, for one call among n ranks.
  [[nodiscard]] Seconds copy_time(Operation operation, Algorithm algorithm, Bytes bytes,
                                  std::int32_t n) const;

  /// The part of time() by which one call inside a node takes longer than its messages, steps and copies: each
  /// rank sends so much later; `bytes` as on the network. 0 where no closed form prices it.
  Seconds beyond_links(CollectiveOp op, Bytes bytes, const RankGroup& group);

  /// The bytes of an operation's messages on the network; for exchanges of experts less than `bytes`, which counts all
  /// copies.
  Bytes wire_bytes(CollectiveOp op, Bytes bytes, const RankGroup& group);

  /// Whether, since the last set_faults(), a time was asked for that dead links make infinite.
  [[nodiscard]] bool unreachable() const { return cut_group_.has_value(); }
  /// The pair of ranks and the dead links; for unreachable() only.
  [[nodiscard]] std::string describe_unreachable();

 private:
  struct Candidate;
  struct OpCosts;
  struct GroupCosts;
  struct Priced;
  struct GroupHash {
    std::size_t operator()(const RankGroup& group) const;
  };
  /// A set of link faults as numbers; two sets are the same if all of their numbers are, bit for bit.
  using FaultKey = std::vector<std::uint64_t>;
  struct FaultKeyHash {
    std::size_t operator()(const FaultKey& key) const;
  };

  OpCosts& costs_of(CollectiveOp op, const RankGroup& group);
  void fill(OpCosts& costs, CollectiveOp op, const RankGroup& group);
  GroupCosts& group_costs(const RankGroup& group);
  OpCosts& boundary_costs(GroupCosts& costs, const RankGroup& group, std::int32_t boundary);
  [[nodiscard]] SiblingGroups siblings(const OpCosts& costs, const Slice& slice = {}) const;
  /// The groups that stand for all others; where ranks are placed, all groups.
  [[nodiscard]] SiblingGroups tile(const OpCosts& costs, const Slice& slice = {}) const;
  /// The groups that have to be looked at on healthy links.
  [[nodiscard]] SiblingGroups representatives(const OpCosts& costs, const Slice& slice = {}) const;
  void forget_groups();
  [[nodiscard]] bool knows_tiles() const { return memoise_ && !reference_ && placement_.empty(); }
  const LinkSet& links_of(const OpCosts& costs, Candidate& candidate);
  const LinkLoads& loads_of(const OpCosts& costs, Candidate& candidate, Looked looked);
  [[nodiscard]] LinkLoads by_dimension(const LinkLoads& loads) const;
  /// The key of an operation in a store; empty where it can't be shared.
  [[nodiscard]] std::optional<CurveKey> shared_key(const OpCosts& costs, const Candidate& candidate,
                                                   const RankGroup::Level& slice) const;
  [[nodiscard]] std::optional<CurveKey> shared_key(const Asked& asked);
  KeptPaces paces_of_all(const Asked& one, const Asked& other);
  KeptPaces paces_from_tile(const Asked& one, const Asked& other);
  KeptPaces shared_paces(const Asked& one, const Asked& other);
  LinkUses uses_by_dimension(std::span<const Asked> operations);
  LinkUses uses_of_all(std::span<const Asked> operations);
  [[nodiscard]] std::vector<Candidate> candidates(CollectiveOp op, const SiblingGroups& groups);
  [[nodiscard]] BytesPerSecond node_link(CollectiveOp op, const SiblingGroups& groups) const;
  [[nodiscard]] static Candidate in_node(CollectiveOp op, const SiblingGroups& groups);
  [[nodiscard]] double beyond_links(const OpCosts& costs, const Candidate& candidate, double bytes,
                                    double healthy) const;
  [[nodiscard]] std::optional<Seconds> closed_form(const OpCosts& costs, double bytes) const;
  [[nodiscard]] std::optional<Seconds> exchange_time(const OpCosts& costs, double bytes) const;
  void add_curves(OpCosts& costs, const SiblingGroups& groups);
  /// Where tokens go, among `members` with equal shares in one domain.
  [[nodiscard]] TokenTargets token_targets(double members) const;
  [[nodiscard]] Skew skew_of(CollectiveOp op, const SiblingGroups& groups) const;
  [[nodiscard]] Skew skew_of(CollectiveOp op, std::size_t members) const;
  [[nodiscard]] std::vector<double> member_shares(std::size_t members) const;
  [[nodiscard]] std::vector<double> copy_chances(const SiblingGroups& groups) const;
  [[nodiscard]] static Pattern pattern_of(CollectiveOp op, const Candidate& candidate);
  [[nodiscard]] Pattern pattern_of(CollectiveOp op, const Candidate& candidate, const SiblingGroups& groups,
                                   double bytes) const;
  CostCurve make_curve(CurveMaker& maker, CollectiveOp op, const Candidate& candidate,
                       const SiblingGroups& groups, bool with_links = true) const;
  /// The curve on the healthy network, taken from the store if it is there. `groups`: all groups, or those of the first
  /// slice along an axis.
  CostCurve healthy_curve(const OpCosts& costs, const Candidate& candidate, const SiblingGroups& groups,
                          const RankGroup::Level& slice = {});
  CostCurve& sick_curve(const OpCosts& costs, Candidate& candidate);
  [[nodiscard]] bool healthy() const { return faults_.links.empty(); }
  PricedNetwork& sick_network();
  CurveMaker& sick_maker();  ///< for sick_network()
  void forget_sick_prices();
  [[nodiscard]] bool touched(const OpCosts& costs, Candidate& candidate, const Slice& slice);
  const SliceLinks& links_of_slices(const OpCosts& costs, Candidate& candidate, RankGroup::Level axis);
  void record(const OpCosts& costs, Candidate& candidate, const Slice& slice);
  SliceLinks slice_links(const OpCosts& costs, const Candidate& candidate, RankGroup::Level axis);
  SliceLinks slice_links_plainly(const OpCosts& costs, const Candidate& candidate, RankGroup::Level axis);

  [[nodiscard]] double at_ranks(const Candidate& candidate, double bytes, double memory_share) const;
  [[nodiscard]] Seconds copying(Bytes bytes, double memory_share) const;
  [[nodiscard]] double healthy_time(const OpCosts& costs, Candidate& candidate, double bytes);
  std::size_t choose(OpCosts& costs, double bytes);
  Seconds price(OpCosts& costs, double bytes, const Slice& slice);
  double network_time(OpCosts& costs, std::size_t chosen, double bytes, const Slice& slice);
  double sick_time(OpCosts& costs, Candidate& candidate, double bytes);
  std::pair<std::size_t, double> chosen_time(OpCosts& costs, double bytes, const Slice& slice);
  std::pair<std::size_t, double> remembered(OpCosts& costs, double bytes, const Slice& slice);
  std::pair<Candidate*, double> healthy_choice(OpCosts& costs, double bytes);
  std::optional<double> simulated(PricedNetwork& network, const OpCosts& costs, const Candidate& candidate,
                                  double bytes) const;

  const Fabric& fabric_;
  const StackProfile::Communication& communication_;
  BytesPerSecond memory_rate_;
  const NodeCollectives* node_;  ///< may be null
  TokenExchange exchange_;
  double memory_share_ = 1;
  std::unique_ptr<PricedNetwork> healthy_, actual_;  ///< actual_: made with the first fault
  std::unique_ptr<CurveMaker> healthy_maker_, actual_maker_;
  FaultSet faults_;
  std::uint64_t fault_epoch_ = 0;   ///< number of the current set of faults; 0: none
  std::uint64_t actual_epoch_ = 0;  ///< epoch of the faults that actual_ has
  std::uint64_t last_epoch_ = 0;
  std::unordered_map<FaultKey, std::uint64_t, FaultKeyHash> epochs_;
  FaultKey fault_key_;  ///< scratch memory
  std::size_t sick_prices_ = 0;
  bool recording_ = false;
  LinkSet recorded_, recorded_part_;
  std::vector<std::int32_t> placement_;
  std::vector<double> expert_loads_;
  double tolerance_ = kCollectiveTolerance;
  bool memoise_ = true, reference_ = false;
  std::unordered_map<RankGroup, std::unique_ptr<GroupCosts>, GroupHash> memo_;
  /// The groups asked for last: a plan asks for a handful of groups over and over.
  struct RecentGroup {
    RankGroup group;
    GroupCosts* costs = nullptr;
  };
  std::array<RecentGroup, 8> recent_groups_;
  std::unique_ptr<GroupCosts> unmemoised_;
  /// For met_ and paces_, whose keys are the tile_links() of two operations.
  struct LinksHash {
    std::size_t operator()(const std::pair<const LinkSet*, const LinkSet*>& sets) const;
  };
  std::unordered_map<std::pair<const LinkSet*, const LinkSet*>, bool, LinksHash> met_;
  std::unordered_map<std::pair<const LinkSet*, const LinkSet*>, KeptPaces, LinksHash> paces_;
  /// Which links some operations use most, kept by their loads on links of the tile: the most per dimension and, once
  /// asked for, per link of the tile and per link of the fabric.
  struct Uses {
    LinkUses by_dimension;
    std::optional<LinkUses> of_tile, of_all;
  };
  std::map<std::vector<const LinkLoads*>, Uses> uses_;
  std::vector<const LinkLoads*> asked_loads_;  ///< scratch memory
  std::shared_ptr<CurveStore> store_;          ///< may be null
  std::optional<RankGroup> cut_group_;
};

}  // namespace shardscape::network
