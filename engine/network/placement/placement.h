// Where the ranks of a plan lie on a fabric, and what that costs the links.
//
// A placement maps the logical ranks of a plan (rank = sum of coordinate * stride under its rank order) to
// the ranks of the fabric; empty stands for the plain order, each rank on its own number.
//
// The demand of a plan is a list of traffic classes, one per axis: the flows of the rings over all sibling
// groups (pipelines: of neighbouring stages, both ways), each of the same bytes. The axes of a plan take
// turns on the network, so the flows of one class contend with each other and the classes add up:
//
//     congestion = sum over classes of  bytes * max over links of (flows on the link / bandwidth of the link)
//     byte-hops  = sum over classes of  bytes * links crossed by its flows
//
// which is the bandwidth part of the lock-step analysis (healthy_costs.h) for ring algorithms. To let
// axes contend instead, put their flows in one class.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/network/groups/rank_group.h"
#include "engine/spec/group_bytes.h"
#include "engine/spec/plan.h"

namespace shardscape::network {

using Placement = std::vector<std::int32_t>;  ///< index: logical rank; its rank of the fabric

/// Whether it has each of 0 .. ranks-1 exactly once, or is empty.
[[nodiscard]] bool is_placement(std::span<const std::int32_t> placement, std::int32_t ranks);

/// Whether it has each of 0 .. ranks-1 at most once; it places as many logical ranks as it is long.
[[nodiscard]] bool is_partial_placement(std::span<const std::int32_t> placement, std::int32_t ranks);

/// The next rank on the ring over the group that `rank` is in; after the last comes the first, so that only there the
/// successor is the lower one.
[[nodiscard]] std::int32_t ring_successor(const RankGroup& group, std::int32_t rank);

/// How the groups of one or more plan axes lie on the fabric: the rings over all sibling groups, at once.
struct AxisSpan {
  std::vector<PlanAxis> axes;
  std::int32_t degree = 1;
  /// Between neighbours of the innermost axis, in ranks; 0 for degree 1.
  std::int32_t stride = 0;
  std::vector<std::int32_t> dimensions;  ///< dimensions of the fabric that the rings cross, ascending
  std::int32_t hops = 0;                 ///< largest number of links between ring neighbours
  double mean_hops = 0;
  std::int32_t contention = 0;  ///< most flows on one link in a step of the rings; 0 for degree 1
};

/// The spans of tp, cp, dp, pp, and of dp with cp. plan.gpus() must be the fabric's ranks. O(ranks * hops).
std::vector<AxisSpan> axis_spans(const Fabric& fabric, const ParallelPlan& plan,
                                 std::span<const std::int32_t> placement = {});

struct RankFlow {
  std::int32_t source = 0, destination = 0;  ///< logical ranks
};

/// Flows of equal bytes that are active at the same time.
struct TrafficClass {
  double bytes = 0;  ///< bytes of each flow
  std::vector<RankFlow> flows;
};
using PlacementDemand = std::vector<TrafficClass>;

/// The traffic classes of the axes that send anything.
PlacementDemand plan_demand(const ParallelPlan& plan, const GroupBytes& bytes);

/// The cost of a placement. Costs are compared by congestion first, then by byte-hops.
struct PlacementCost {
  double congestion_s = 0;
  double byte_hops = 0;
  friend auto operator<=>(const PlacementCost&, const PlacementCost&) = default;
};

/// The cost of a placement, counted from scratch. O(flows * hops + links * classes).
PlacementCost placement_cost(const Fabric& fabric, const PlacementDemand& demand,
                             std::span<const std::int32_t> placement = {});

/// Regular placements worth trying, distinct, the plain order not among them: the plan laid out in every
/// rank order, on the fabric's rank numbers and on a walk through them that changes one coordinate by one at
/// a time (so that long groups fold into blocks).
std::vector<Placement> regular_placements(const Fabric& fabric, const ParallelPlan& plan);

}  // namespace shardscape::network
