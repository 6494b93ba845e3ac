// From groups and an algorithm to a cost curve: what can be said without a simulation is said with formulas.
//
// An algorithm is a sequence of rounds; in a round every member sends equal messages. The cases:
//
//   uniform     all flows of a round have one latency and one share (flow_set.h). Then each is rigid, all
//               messages of the round start, drain and arrive together, and so it goes on:
//               T = sum over rounds of (latency + message / rate). Exact for every algorithm made of rounds.
//   aligned     rings: each link is used by the same hop of whichever rings use it, and rings that share
//               links have equal hops. Exchanging two of them changes nothing, and the solution is unique, so
//               the rings keep step with each other: flows on a link start and end together, at constant
//               rates 1/shared, and ring_time.h is exact. A ring alone on its links is the simplest case.
//   one round   flows start together, with w c bytes each, w = 1 where they are equal. A rigid flow drains in
//               exactly w c shared, and no flow later than that; T = max over flows of (latency + w c shared)
//               where the largest is rigid's. A direct all-to-all is one, in equal parts or not; where links are
//               shared unevenly it has bounds, or one simulation for all bytes (cost_curve.h).
//   stages      dimension-wise: a ring per axis, over links of its own. Uniform stages begin and end at one
//               time. After a first stage that drifts, a stage whose rings are all alike and alone on
//               their links still adds its own time: the latest member's chunk walks round the whole ring.
//   contended   the rest. Groups that are connected by shared links are simulated together; components with
//               the same traffic on the same links, up to the numbering of links, take the same time, so
//               one of each class is. Healthy fabrics have few classes; a sick link adds that of its own
//               component.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/signature.h"
#include "engine/network/collectives/traffic.h"
#include "engine/network/groups/components.h"
#include "engine/network/groups/ring_order.h"
#include "engine/network/groups/sibling_groups.h"
#include "engine/network/prices/cost_curve.h"
#include "engine/network/prices/flow_set.h"
#include "engine/network/prices/link_loads.h"
#include "engine/network/prices/priced_network.h"

namespace shardscape::network {

/// Makes curves. Keeps scratch memory between calls: one object per network and thread.
class CurveMaker {
 public:
  explicit CurveMaker(PricedNetwork& network);

  /// Whether curves list the links that carry anything; on at first.
  void collect_links(bool on) { collects_ = on; }
  /// Whether rings that come again (gathering and scattering take the same ones) are remembered and not analysed again,
  /// links are found without rates, and loads of exchanges counted without their flows; off at first. Changes no result
  /// as long as the network stays as it is.
  void take_shortcuts(bool on) { shortcuts_ = on; }

  /// Makes the curve of an algorithm on groups of equal size that suit it. `pattern` names operation and algorithm; its
  /// groups, chunks and bytes are filled in from `groups`.
  CostCurve make(const Pattern& pattern, const SiblingGroups& groups);
  /// The curve of equal messages between pairs of ranks, all at once; each pair stands for `copies` like it on other
  /// links.
  CostCurve one_round(std::span<const PointToPoint> sends, double copies = 1);
  /// As make(), but only the links of the curve.
  LinkSet links(const Pattern& pattern, const SiblingGroups& groups);
  LinkSet links(std::span<const PointToPoint> sends);
  /// How much of its links the operation takes while it sends.
  LinkLoads loads(const Pattern& pattern, const SiblingGroups& groups);
  LinkLoads loads(std::span<const PointToPoint> sends);

 private:
  using Rings = SiblingGroups;
  struct RingParts {
    CurveParts::Stage exact, upper;  ///< exact: of rings that keep step; upper: bounds of all rings
    int steps = 0;
    /// Of the flows: the least latency in seconds, and the least `alone` and largest `shared`, in seconds per byte.
    double least_latency = 0, fastest = 0, slowest = 0;
    std::vector<CurveParts::Contended> contended;
    bool reachable = true, uniform = false, uncontended = false;
    LinkSet links;                           ///< if they are collected
    std::shared_ptr<const LinkLoads> loads;  ///< if they are asked for
  };
  struct KnownRings {
    std::vector<std::int32_t> ranks;
    std::size_t size = 0;
    int steps = 0;
    double share = 0;
    bool with_links = false, rank_steps = false;
    bool whole = true;  ///< with what curves need; otherwise loads alone
    RingParts parts;
  };
  /// The flows of one round from member to member, their share of the bytes, and how often the round comes.
  struct Round {
    std::vector<std::pair<std::size_t, std::size_t>> flows;
    double share = 0;
    double times = 1;
  };

  CurveParts parts(const Pattern& pattern, const SiblingGroups& groups);
  CurveParts ring(const Pattern& pattern, const SiblingGroups& groups);
  /// The lower bounds of a contended part: from its rigid flows, or also from its links and from each flow alone.
  enum class LowerBounds : std::uint8_t { rigid_flows, links_and_flows };
  [[nodiscard]] CurveParts round_of_flows(LowerBounds bounds, double copies);
  CurveParts exchange(const Pattern& pattern, const SiblingGroups& groups);
  LinkSet exchange_links(const SiblingGroups& groups, const Skew& skew);
  void split_exchange(const Pattern& pattern, const SiblingGroups& groups, CurveParts& curve);
  CurveParts dimension_wise(const Pattern& pattern, const SiblingGroups& groups);
  [[nodiscard]] static std::vector<Round> rounds_of(const Pattern& pattern, std::size_t n);
  CurveParts rounds(const Pattern& pattern, const SiblingGroups& groups, const std::vector<Round>& rounds);
  CurveParts general(const Pattern& pattern, const SiblingGroups& groups);
  [[nodiscard]] Rings lines(std::span<const GroupBox> boxes, std::size_t level,
                            const SiblingGroups& groups) const;
  static CurveParts::Stage alone(const RingParts& stage, bool first);
  static AffineCost stages_from_below(std::span<const RingParts> stages, std::size_t busiest);

  RingParts rings(const Rings& rings, int steps, double share);
  RingParts analyse(const Rings& rings, int steps, double share);
  RingParts links_of(const Rings& rings);
  [[nodiscard]] static std::size_t kind_of(const std::vector<Hop>& hops, int steps, RingParts& parts);
  void drifting_rings(const Rings& rings, int steps, double share, RingParts& parts);
  [[nodiscard]] bool keeps_step(std::span<const std::size_t> component, std::size_t size) const;
  [[nodiscard]] std::vector<Hop> hops(std::size_t ring, std::size_t size, double RoutedFlow::*rate) const;
  [[nodiscard]] Signature signature_of(const Rings& rings, std::span<const std::size_t> component,
                                       bool exact);
  CurveParts::Contended bounded(const Rings& rings, std::span<const std::size_t> component, int steps,
                                double share) const;
  void sign(const Traffic& traffic, std::int32_t& links, Signature& signature);
  void add_stage(double seconds);
  void add_stage(const RingParts& rings);
  void forget(std::span<const std::int32_t> links);
  static CurveParts unreachable();

  PricedNetwork& network_;
  bool collects_ = true, shortcuts_ = false;
  bool links_only_ = false;                   ///< set while nothing but links is asked for
  std::vector<StageLoads>* loads_ = nullptr;  ///< set while loads are asked for
  std::unordered_multimap<std::uint64_t, KnownRings> known_rings_;  ///< key: hash
  std::size_t known_ranks_ = 0;                                     ///< number of ranks in all known rings
  FlowSet flows_;
  std::vector<std::int32_t> route_;  ///< scratch memory
  std::vector<std::int32_t> user_;   ///< index: link; a ring or group that uses it, or -1
  std::vector<std::int32_t> label_;  ///< index: link; the hop that uses it, -1: none, -2: several
};

}  // namespace shardscape::network
