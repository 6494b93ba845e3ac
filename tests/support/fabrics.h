// Small fabrics for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/spec/plan.h"

namespace shardscape::network {

inline DimensionSpec dimension_of(const char* name, DimensionKind kind, std::vector<std::int64_t> shape) {
  DimensionSpec d;
  d.name = name;
  d.kind = kind;
  d.shape = std::move(shape);
  d.bandwidth = BytesPerSecond(1e9);
  d.latency = Seconds(1e-6);
  return d;
}

inline DimensionSpec fat_tree_of(const char* name, std::int64_t size, std::int64_t levels, std::int64_t radix,
                                 double oversubscription = 1) {
  DimensionSpec d = dimension_of(name, DimensionKind::fat_tree, {size});
  d.fat_tree.levels = levels;
  d.fat_tree.radix = radix;
  d.fat_tree.oversubscription = oversubscription;
  return d;
}

inline DimensionSpec dragonfly_of(const char* name, std::int64_t groups, std::int64_t routers,
                                  std::int64_t hosts) {
  DimensionSpec d = dimension_of(name, DimensionKind::dragonfly, {groups * routers * hosts});
  d.dragonfly.routers_per_group = routers;
  d.dragonfly.hosts_per_router = hosts;
  return d;
}

inline CustomSpec::Link wire(std::int64_t a, std::int64_t b, bool one_way = false) {
  return {a, b, one_way, BytesPerSecond(1e9), Seconds(1e-6)};
}

inline DimensionSpec custom_of(const char* name, std::int64_t size, std::int64_t switches,
                               std::vector<CustomSpec::Link> links) {
  DimensionSpec d = dimension_of(name, DimensionKind::custom, {size});
  d.bandwidth = {};
  d.latency = {};
  d.custom.switches = switches;
  d.custom.links = std::move(links);
  return d;
}

/// The spec must be valid.
inline Fabric fabric_of(std::vector<DimensionSpec> dimensions) {
  FabricSpec spec;
  spec.name = "test";
  spec.dimensions = std::move(dimensions);
  const Problems problems = spec.validate();
  for (const Problem& problem : problems.list()) ADD_FAILURE() << problem.field << ": " << problem.message;
  return Fabric(spec);
}

/// Vertices along a list of links from `from`, checked to be connected end to end.
inline std::vector<std::int32_t> vertices_along(const Fabric& fabric, std::int32_t from,
                                                const std::vector<std::int32_t>& path) {
  std::vector<std::int32_t> result = {from};
  for (const std::int32_t id : path) {
    const Link& link = fabric.links().at(static_cast<std::size_t>(id));
    EXPECT_EQ(link.source, result.back());
    result.push_back(link.destination);
  }
  return result;
}

inline std::vector<std::int32_t> visited(const Fabric& fabric, std::int32_t from, std::int32_t to) {
  std::vector<std::int32_t> path;
  fabric.append_route(from, to, path);
  return vertices_along(fabric, from, path);
}

/// Degrees in the order of the default rank order, innermost first.
inline ParallelPlan ordered_plan(std::int32_t tp, std::int32_t cp, std::int32_t dp, std::int32_t pp,
                                 const char* order = "tp-cp-dp-pp") {
  ParallelPlan plan;
  plan.tensor = tp;
  plan.context = cp;
  plan.data = dp;
  plan.pipeline = pp;
  plan.order = parse_rank_order(order).value();
  return plan;
}

}  // namespace shardscape::network
