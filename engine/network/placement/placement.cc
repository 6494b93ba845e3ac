// Lays plans out on fabrics: spans of axes, the flows that plans demand, the cost of a placement, and regular
// placements.
#include "engine/network/placement/placement.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

std::int32_t placed(std::span<const std::int32_t> placement, std::int32_t rank) {
  return placement.empty() ? rank : placement[static_cast<std::size_t>(rank)];
}

AxisSpan span_of(const Fabric& fabric, const RankGroup& group, std::span<const std::int32_t> placement) {
  AxisSpan span;
  span.degree = group.size();
  if (group.alone()) return span;
  span.stride = group.levels[0].stride;
  std::vector<std::int32_t> flows(fabric.links().size(), 0);
  std::vector<std::int32_t> path;
  std::set<std::int32_t> dimensions;
  std::int64_t crossed = 0;
  for (std::int32_t rank = 0; rank < fabric.ranks(); ++rank) {
    path.clear();
    fabric.append_route(placed(placement, rank), placed(placement, ring_successor(group, rank)), path);
    for (const std::int32_t link : path) {
      span.contention = std::max(span.contention, ++flows[static_cast<std::size_t>(link)]);
      dimensions.insert(fabric.links()[static_cast<std::size_t>(link)].dimension);
    }
    span.hops = std::max(span.hops, static_cast<std::int32_t>(path.size()));
    crossed += static_cast<std::int64_t>(path.size());
  }
  span.dimensions.assign(dimensions.begin(), dimensions.end());
  span.mean_hops = static_cast<double>(crossed) / fabric.ranks();
  return span;
}

void add_ring(const RankGroup& group, Bytes bytes, std::int32_t ranks, PlacementDemand& demand) {
  if (group.alone() || bytes <= Bytes(0)) return;
  TrafficClass rings{bytes.value(), {}};
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    rings.flows.push_back({rank, ring_successor(group, rank)});
  demand.push_back(std::move(rings));
}

void add_pipeline(const RankGroup& group, const GroupBytes& bytes, std::int32_t ranks,
                  PlacementDemand& demand) {
  if (group.alone() || bytes[ParallelGroup::pipeline] <= Bytes(0)) return;
  TrafficClass chains{bytes[ParallelGroup::pipeline].value(), {}};
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const std::int32_t next = ring_successor(group, rank);
    // With two stages, both directions are the same pair.
    if (next < rank && !(bytes.pipeline_wraps && group.size() > 2)) continue;
    chains.flows.push_back({rank, next});
    chains.flows.push_back({next, rank});
  }
  demand.push_back(std::move(chains));
}

/// The ranks in an order in which neighbours differ by one in one coordinate: the reflected mixed-radix Gray code over
/// the fabric's axes.
Placement folded_walk(const Fabric& fabric) {
  Placement walk;
  for (std::int32_t i = 0; i < fabric.ranks(); ++i) {
    std::int32_t rank = 0;
    for (const Fabric::Axis& axis : fabric.axes()) {
      const std::int32_t digit = i / axis.stride % axis.size;
      const bool back = i / (axis.stride * axis.size) % 2 == 1;
      rank += (back ? axis.size - 1 - digit : digit) * axis.stride;
    }
    walk.push_back(rank);
  }
  return walk;
}

/// The fabric rank of each logical rank of the plan if its axes lay in another order.
Placement reordered(const ParallelPlan& plan, const RankOrder& order) {
  ParallelPlan other = plan;
  other.order = order;
  const PlanLayout from(plan), to(other);
  Placement placement;
  for (std::int32_t rank = 0; rank < plan.gpus(); ++rank) {
    std::int32_t target = 0;
    for (const PlanAxis axis : order)
      target += rank / from.stride(axis) % plan.degree(axis) * to.stride(axis);
    placement.push_back(target);
  }
  return placement;
}

}  // namespace

bool is_placement(std::span<const std::int32_t> placement, std::int32_t ranks) {
  return placement.empty() ||
         (placement.size() == static_cast<std::size_t>(ranks) && is_partial_placement(placement, ranks));
}

bool is_partial_placement(std::span<const std::int32_t> placement, std::int32_t ranks) {
  std::vector<bool> taken(static_cast<std::size_t>(ranks), false);
  for (const std::int32_t rank : placement) {
    if (rank < 0 || rank >= ranks || taken[static_cast<std::size_t>(rank)]) return false;
    taken[static_cast<std::size_t>(rank)] = true;
  }
  return true;
}

std::int32_t ring_successor(const RankGroup& group, std::int32_t rank) {
  for (std::int32_t i = 0; i < group.depth; ++i) {
    const RankGroup::Level& level = group.levels[static_cast<std::size_t>(i)];
    const std::int32_t coordinate = rank / level.stride % level.extent;
    if (coordinate + 1 < level.extent) return rank + level.stride;
    rank -= coordinate * level.stride;
  }
  return group.mirrored(rank);
}

std::vector<AxisSpan> axis_spans(const Fabric& fabric, const ParallelPlan& plan,
                                 std::span<const std::int32_t> placement) {
  SHARDSCAPE_CHECK(plan.gpus() == fabric.ranks(), plan.gpus(), fabric.ranks());
  SHARDSCAPE_CHECK(is_placement(placement, fabric.ranks()), placement.size(), fabric.ranks());
  const PlanLayout layout(plan);
  std::vector<AxisSpan> spans;
  const auto add = [&](const RankGroup& group, std::vector<PlanAxis> axes) {
    spans.push_back(span_of(fabric, group, placement));
    spans.back().axes = std::move(axes);
  };
  for (const PlanAxis axis : enum_values<PlanAxis>()) add(layout.group(axis), {axis});
  add(layout.group(PlanAxis::data, PlanAxis::context), {PlanAxis::data, PlanAxis::context});
  return spans;
}

PlacementDemand plan_demand(const ParallelPlan& plan, const GroupBytes& bytes) {
  const PlanLayout layout(plan);
  const auto ranks = static_cast<std::int32_t>(plan.gpus());
  PlacementDemand demand;
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    if (group != ParallelGroup::pipeline) add_ring(layout.group(group), bytes[group], ranks, demand);
  }
  add_pipeline(layout.group(PlanAxis::pipeline), bytes, ranks, demand);
  return demand;
}

PlacementCost placement_cost(const Fabric& fabric, const PlacementDemand& demand,
                             std::span<const std::int32_t> placement) {
  PlacementCost cost;
  std::vector<std::int32_t> path;
  for (const TrafficClass& traffic : demand) {
    std::vector<std::int32_t> flows(fabric.links().size(), 0);
    std::int64_t crossed = 0;
    for (const RankFlow& flow : traffic.flows) {
      path.clear();
      fabric.append_route(placed(placement, flow.source), placed(placement, flow.destination), path);
      for (const std::int32_t link : path) ++flows[static_cast<std::size_t>(link)];
      crossed += static_cast<std::int64_t>(path.size());
    }
    double worst = 0;
    for (std::size_t link = 0; link < flows.size(); ++link) {
      worst = std::max(worst, flows[link] / fabric.links()[link].bandwidth.value());
    }
    cost.congestion_s += traffic.bytes * worst;
    cost.byte_hops += traffic.bytes * static_cast<double>(crossed);
  }
  return cost;
}

std::vector<Placement> regular_placements(const Fabric& fabric, const ParallelPlan& plan) {
  SHARDSCAPE_CHECK(plan.gpus() == fabric.ranks(), plan.gpus(), fabric.ranks());
  Placement plain(static_cast<std::size_t>(fabric.ranks()));
  std::iota(plain.begin(), plain.end(), 0);
  const Placement walk = folded_walk(fabric);
  std::vector<Placement> placements;
  std::set<Placement> seen = {plain};
  const auto add = [&](const Placement& placement) {
    if (seen.insert(placement).second) placements.push_back(placement);
  };
  RankOrder order = enum_values<PlanAxis>();
  do {
    Placement placement = reordered(plan, order);
    add(placement);
    for (std::int32_t& rank : placement) rank = walk[static_cast<std::size_t>(rank)];
    add(placement);
  } while (std::ranges::next_permutation(order).found);
  return placements;
}

}  // namespace shardscape::network
