// What operations of groups take on healthy links, with every sibling group running at the same time.
//
//     time = calls * (call + steps * rank_step + C(bytes / calls) + T(bytes / calls))
//
// with rank_step_scale_out for the steps that cross the scale-out network: all of them where a group does, by
// axis for dimension_wise.
//
// C is what a rank needs for its own copies and reductions: local_copy * AlgorithmRules::copied * bytes over the peak
// rate of its memory, that of the slowest rank. It adds to T: up to some hundred megabytes a step of NCCL's
// ring is one chunk, so what a rank reads and writes falls between its receipts and its sends. Measured
// all-reduces say so (inside one node of DGX A100 and H100, 1 to 66 MB: median error 11 % if C adds, 21 % if
// only the longer of C and T counts, which is T). Sends and all-to-all wait for no receipt: their copies
// hide behind the wire, as measured sends between two GPUs do.
//
// T is the time that the fluid simulation (flow_simulator.h) of the operation's messages takes on links at
// the stack's achieved share of their bandwidth, all sibling groups at once; `steps` counts the rounds of the
// algorithm that wait for each other (AlgorithmRules::steps). T comes from a cost curve per group, operation and
// algorithm (cost_curve.h, curve_maker.h): formulas where they are exact, simulations memoised by
// bytes elsewhere. All of it is exact to 1e-9 but for contended parts whose upper bound stands for them:
// where lower and upper bounds prove it to be less than the tolerance too long, and where a component has more
// than kMostSimulatedMessages messages (then rings and exchanges are at most twice the truth, dimension-wise
// the sum of such bounds of its stages). Approximations are never too short.
//
// Algorithms are those of the stack's library that suit the group (ways.h); each call takes the cheapest at its size
// by the time on healthy links, the earlier in the list among equals, as NCCL's tuner does: a job keeps what
// it was started with when a link gets sick (collective_prices.h).
//
// Where the stack asks for the protocols of a node and the device has their constants (protocols.h), calls of
// all-reduce, reduce-scatter, all-gather and all-to-all among ranks behind one switch of a node take
//
//     call + the closed form,    at least call + steps * rank_step + C + T,
//
// with T that of `direct`, which puts the same bytes on each rank's link and waits for nothing. Exchanges of experts
// likewise (expert_traffic.h).
//
// Left out: contention between operations of different axes of a plan, contention of copies with kernels that
// compute, protocols between nodes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/memo.h"
#include "engine/network/fabric/link_set.h"
#include "engine/network/prices/collective_setup.h"
#include "engine/network/prices/cost_curve.h"
#include "engine/network/prices/curve_maker.h"
#include "engine/network/prices/curve_store.h"
#include "engine/network/prices/expert_traffic.h"
#include "engine/network/prices/link_loads.h"
#include "engine/network/prices/priced_network.h"
#include "engine/network/prices/ways.h"

namespace shardscape::network {

/// No algorithm is offered whose contended parts need more messages without a bound, unless nothing else is left.
constexpr double kMostMessagesToChoose = 1 << 16;

/// Which groups to look at: all, or only those that stand for the others (tiles.h; not where ranks are placed).
/// `dimensions`: like `tile`, but each distinct load only once per dimension, with the number of the dimension in
/// place of the link's; in any order, several per dimension.
enum class Looked : std::uint8_t { all, tile, dimensions };

/// A way to carry out an operation, and what is known of it.
struct KnownWay : Way {
  /// Stands for the operation, its group and the choice in keys of memos: no other way has it.
  std::uint32_t number = 0;
  CostCurve curve = {};
  // These are filled when they are first asked for.
  std::optional<LinkSet> all_links = {};               ///< the links that carry it, all siblings at once
  std::array<std::optional<LinkLoads>, 3> loads = {};  ///< index: Looked
  /// With the groups of one of an axis's slices alone: of the first, where it stands for all, or of each.
  Memo<RankGroup::Level, std::vector<CostCurve>> within_slices = {};
  Memo<RankGroup::Level, std::vector<LinkSet>> links_by_slice =
      {};  ///< of the groups of each slice of an axis
};

/// The way that carries out a call, and its seconds on healthy links.
struct ChosenWay {
  std::size_t way = 0;
  double seconds = 0;
};

/// All that is known of an operation of a group.
struct OperationCosts {
  CollectiveOp op = CollectiveOp::all_reduce;
  RankGroup group;
  /// >= 0: only between the member of each group with this number and the next one. Of a message, the size of the group
  /// more: from the next one back.
  std::int32_t boundary = -1;
  std::vector<KnownWay> ways;
  bool affine = false;  ///< whether the curves of all ways are affine
  /// Bandwidth of a rank's link if the protocols of a node price the operation (then there is one way, `direct`), or 0.
  BytesPerSecond node_link;
  bool closed = false;  ///< a closed form may apply: that of a node's protocols, or of an exchange of experts
  ExpertTraffic::Reach reach;
  ExpertTraffic::Senders senders;
  double busiest = 1;                   ///< bytes of the busiest member over those of a mean one
  HandyMemo<double, ChosenWay> chosen;  ///< key: bytes of one call, as the network counts them

  /// The bytes of one call as the network counts them.
  [[nodiscard]] double sent_by(const CollectiveKey& key) const {
    return reach.wire_share * key.bytes.value() / key.calls;
  }
};

/// The boundaries of a chain of groups, each priced by itself.
struct BoundaryCosts {
  std::vector<OperationCosts>
      each;  ///< index: boundary; the last one closes the chain; no ways: not asked for yet
  std::vector<OperationCosts> one_way;  ///< messages to the next member, then those back, likewise
  std::vector<std::size_t> same;        ///< index: boundary; the first boundary that costs the same
  std::size_t alike = 0;                ///< number of boundaries, from the first on, that cost the same
};

// Keys of what is remembered.

struct OperationKey {
  CollectiveOp op = CollectiveOp::all_reduce;
  RankGroup group;
  friend bool operator==(const OperationKey&, const OperationKey&) = default;
};
/// Two operations, by the numbers of their ways.
struct TwoWays {
  std::uint32_t one = 0, other = 0;
  friend bool operator==(const TwoWays&, const TwoWays&) = default;
};
/// Several operations likewise, in this order.
struct SeveralWays {
  std::vector<std::uint32_t> numbers;
  friend bool operator==(const SeveralWays&, const SeveralWays&) = default;
};

/// Prices of one setup. All answers are functions of their arguments alone; memos only save time. One per thread.
/// `memory_share`: the slowest rank of every group has only this share of its memory's rate, 0 < share <= 1; algorithms
/// are chosen as for healthy ranks.
class HealthyCosts {
 public:
  explicit HealthyCosts(CollectiveSetup setup);
  HealthyCosts(const HealthyCosts&) = delete;

  [[nodiscard]] const CollectiveSetup& setup() const { return setup_; }
  [[nodiscard]] const ExpertTraffic& experts() const { return experts_; }

  /// Time that passes at the ranks, to begin and to copy, and on the links.
  struct CallTime {
    Seconds at_ranks, on_links;
  };
  /// Time of one call with all of the bytes; 0 for groups of one rank.
  [[nodiscard]] CallTime time_of_call(const CollectiveKey& key, double memory_share) const;
  /// The part of the time of all calls while messages are on their links: all but what passes at the ranks, to begin
  /// and to copy, and the latency of paths. Only during this part do they slow others.
  [[nodiscard]] Seconds time_on_links(const CollectiveKey& key) const;
  struct WithinSlice {
    Seconds least, most;  ///< in the slice whose groups are quickest, and in that where they take longest
  };
  /// Time of all calls as if only the groups of one slice along the key's axis used the network; never more than with
  /// all of them. Where only a simulation would tell, an upper bound. Slices differ where their groups do not tile the
  /// fabric, such as stages of six ranks on nodes of eight; of ranks in places of their own the first slice is taken.
  [[nodiscard]] WithinSlice time_within_slice(const CollectiveKey& key, double memory_share) const;
  /// The part of the time that a rank needs for its own copies, for one call among n ranks.
  [[nodiscard]] Seconds copy_time(Operation operation, Algorithm algorithm, Bytes bytes,
                                  std::int32_t n) const;
  /// The part of the time by which one call inside a node takes longer than its messages, steps and copies: each rank
  /// sends so much later. `bytes` as on the network. 0 where no closed form prices it.
  [[nodiscard]] Seconds beyond_links(CollectiveOp op, Bytes bytes, const RankGroup& group) const;
  /// The bytes of an operation's messages on the network; for exchanges of experts less than `bytes`, which counts all
  /// copies.
  [[nodiscard]] Bytes wire_bytes(CollectiveOp op, Bytes bytes, const RankGroup& group) const;
  /// The algorithm of a call; nothing for passes and groups of one rank.
  [[nodiscard]] std::optional<CollectiveChoice> choice(const CollectiveKey& key) const;

  // The next questions are about all siblings at once, not for groups of one rank. References are valid as long as this
  // object or, on the plain path, until the next question.

  /// The number of the way that carries out the calls (KnownWay::number).
  [[nodiscard]] std::uint32_t way_number(const CollectiveKey& key) const;
  /// The links that carry the operation.
  [[nodiscard]] const LinkSet& links(const CollectiveKey& key) const;
  /// The links that carry it for the groups of each slice along the axis of the key's slice.
  [[nodiscard]] const std::vector<LinkSet>& links_by_slice(const CollectiveKey& key) const;
  /// Whether the two operations use any link in common.
  [[nodiscard]] bool meet(const CollectiveKey& one, const CollectiveKey& other) const;
  /// The same of messages over a boundary.
  [[nodiscard]] bool meet(OperationCosts& boundary, const CollectiveKey& other) const;
  /// The loads that an operation puts on its links while it sends.
  [[nodiscard]] const LinkLoads& loads(const CollectiveKey& key, Looked looked = Looked::all) const;
  [[nodiscard]] const LinkLoads& loads(OperationCosts& boundary) const {
    return loads_of({boundary, boundary.ways.front()}, Looked::all);
  }
  /// The share of its busiest link's bandwidth that an operation takes, in the mean over its time, 0..1.
  [[nodiscard]] double most_use(const CollectiveKey& key) const;
  /// The share of its own pace that each operation keeps while both send.
  [[nodiscard]] KeptPaces paces_together(const CollectiveKey& one, const CollectiveKey& other) const;
  /// The same of a call and of messages over a boundary.
  [[nodiscard]] KeptPaces paces_together(const CollectiveKey& call, OperationCosts& boundary) const;
  /// How long the busiest link is busy if each of these operations sends for `sending` seconds (>= 0). 0 where no link
  /// is busy for longer than `beyond`.
  [[nodiscard]] Seconds busiest_link(std::span<const CollectiveKey> operations,
                                     std::span<const Seconds> sending, Seconds beyond) const;

  // The rest is for the layer of faults (sick_links.h, collective_prices.h).

  [[nodiscard]] OperationCosts& operation(CollectiveOp op, const RankGroup& group) const;
  [[nodiscard]] BoundaryCosts& boundaries(const RankGroup& group) const;
  /// Prices a boundary of these where it is not known yet.
  OperationCosts& boundary(BoundaryCosts& costs, const RankGroup& group, std::int32_t number) const;
  /// Likewise, messages one way: to the next member or back.
  OperationCosts& message(BoundaryCosts& costs, const RankGroup& group, std::int32_t number, bool back) const;
  /// The way that carries out a call that sends so many bytes.
  [[nodiscard]] ChosenWay choose(OperationCosts& costs, double bytes) const;
  /// Seconds of a call's steps at its ranks.
  [[nodiscard]] double in_steps(const Way& way) const;
  /// The part of a call's seconds that is not the network's: fixed costs, steps and copies.
  [[nodiscard]] double at_ranks(const Way& way, double bytes, double memory_share) const;
  /// Seconds by which the closed form of a call exceeds the time at the ranks plus that on healthy links (`on_links`);
  /// 0 where it does not, or there is none. Copies in a slow memory count as time at the ranks, as on a machine with
  /// such memories only.
  [[nodiscard]] double beyond_links(const OperationCosts& costs, const Way& way, double bytes,
                                    double on_links, double memory_share) const;
  /// The groups of the operation, or those in the slice where one is given. For a boundary between stages: of each
  /// group the two members at that boundary.
  [[nodiscard]] SiblingGroups siblings(const OperationCosts& costs, const Slice& slice = {}) const;
  [[nodiscard]] const LinkSet& links_of(const OperationCosts& costs, KnownWay& way) const;
  /// The links of the groups of each slice along an axis.
  [[nodiscard]] std::vector<LinkSet> links_by_slice(const OperationCosts& costs, const Way& way,
                                                    const RankGroup::Level& axis) const;
  [[nodiscard]] CostCurve curve_on(const OperationCosts& costs, const Way& way,
                                   const SiblingGroups& groups) const;
  /// Simulates a call on `network`, which has the fabric of this object; empty where dead links cut it.
  [[nodiscard]] std::optional<double> simulated(PricedNetwork& network, const OperationCosts& costs,
                                                const Way& way, double bytes) const;
  [[nodiscard]] double at(CostCurve& curve, double bytes) const {
    return curve.at(bytes, *network_, setup_.tolerance);
  }
  [[nodiscard]] bool plain() const { return setup_.analysis == Analysis::plain; }
  [[nodiscard]] PricedNetwork& network() const { return *network_; }

 private:
  /// The links that some operations use most: by dimension and, once asked for, by link of the tile and by link of the
  /// fabric.
  struct Uses {
    LinkUses by_dimension;
    std::optional<LinkUses> of_tile, of_all;
  };

  [[nodiscard]] OperationCosts analysed(CollectiveOp op, const RankGroup& group, std::int32_t boundary) const;
  void add_ways(OperationCosts& costs, std::vector<Way> ways, const SiblingGroups& groups) const;
  [[nodiscard]] BytesPerSecond node_link(CollectiveOp op, const SiblingGroups& groups) const;
  [[nodiscard]] SiblingGroups tile(const OperationCosts& costs, const Slice& slice = {}) const;
  [[nodiscard]] SiblingGroups representatives(const OperationCosts& costs, const Slice& slice = {}) const;
  [[nodiscard]] bool knows_tiles() const {
    return setup_.analysis == Analysis::by_tiles && setup_.placement.empty();
  }
  [[nodiscard]] std::optional<CurveKey> shared_key(const OperationCosts& costs, const Way& way,
                                                   const RankGroup::Level& slice) const;
  [[nodiscard]] CostCurve shared_curve(const OperationCosts& costs, const Way& way,
                                       const SiblingGroups& groups, const RankGroup::Level& slice = {}) const;
  [[nodiscard]] std::vector<CostCurve> curves_within_slices(const OperationCosts& costs, const KnownWay& way,
                                                            const RankGroup::Level& axis) const;
  [[nodiscard]] double seconds_of(const OperationCosts& costs, KnownWay& way, double bytes) const;
  [[nodiscard]] ChosenWay cheapest(OperationCosts& costs, double bytes) const;
  [[nodiscard]] Seconds copying(Bytes bytes, double memory_share) const;
  [[nodiscard]] std::optional<Seconds> closed_form(const OperationCosts& costs, double bytes) const;

  struct Asked {
    OperationCosts& costs;
    KnownWay& way;
  };
  [[nodiscard]] Asked asked(const CollectiveKey& key) const;
  [[nodiscard]] const LinkLoads& loads_of(const Asked& asked, Looked looked) const;
  [[nodiscard]] bool meet(const Asked& one, const Asked& other) const;
  [[nodiscard]] KeptPaces paces_from_tile(const Asked& one, const Asked& other) const;
  [[nodiscard]] KeptPaces paces_together(const Asked& one, const Asked& other) const;
  [[nodiscard]] KeptPaces shared_paces(const Asked& one, const Asked& other) const;
  [[nodiscard]] LinkUses uses_by_dimension(std::span<const CollectiveKey> operations) const;
  [[nodiscard]] LinkUses uses_of_all(std::span<const CollectiveKey> operations) const;

  CollectiveSetup setup_;
  ExpertTraffic experts_;
  std::unique_ptr<PricedNetwork> network_;
  std::unique_ptr<CurveMaker> maker_;
  mutable std::uint32_t ways_ = 0;  ///< number of ways so far
  mutable HandyMemo<OperationKey, OperationCosts> operations_;
  mutable Memo<RankGroup, BoundaryCosts> boundaries_;
  mutable std::optional<OperationCosts> plain_;  ///< on the plain path, the operation asked for last
  mutable BoundaryCosts plain_boundaries_;
  mutable std::pair<RankGroup, SiblingGroups> tile_;  ///< of the group whose boundary was asked for last
  mutable Memo<TwoWays, bool> meetings_;
  mutable Memo<TwoWays, KeptPaces> paces_;
  mutable Memo<SeveralWays, Uses> uses_;
  mutable SeveralWays all_;  ///< scratch memory
};

}  // namespace shardscape::network
