// Is every link of the wiring there once, and does every route follow the stated rules?
#include "engine/network/fabric/fabric.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardscape::network {
namespace {

DimensionSpec named_dimension(const char* name, DimensionKind kind, std::vector<std::int64_t> shape) {
  return {name, kind, std::move(shape), BytesPerSecond(1e9), Seconds(1e-6), LinkScope::scale_up};
}

Fabric fabric(std::vector<DimensionSpec> dimensions) {
  FabricSpec spec;
  spec.name = "test";
  spec.dimensions = std::move(dimensions);
  return Fabric(spec);
}

std::vector<std::int32_t> route(const Fabric& f, std::int32_t from, std::int32_t to) {
  std::vector<std::int32_t> path;
  f.append_route(from, to, path);
  return path;
}

/// Vertices that a route visits, checked to be connected end to end.
std::vector<std::int32_t> visits(const Fabric& f, std::int32_t from, std::int32_t to) {
  std::vector<std::int32_t> result = {from};
  for (const std::int32_t id : route(f, from, to)) {
    const Link& link = f.links().at(static_cast<std::size_t>(id));
    EXPECT_EQ(link.source, result.back()) << from << " -> " << to;
    result.push_back(link.destination);
  }
  EXPECT_EQ(result.back(), to);
  return result;
}

std::size_t links(DimensionKind kind, std::vector<std::int64_t> shape) {
  return fabric({named_dimension("d", kind, std::move(shape))}).links().size();
}

TEST(FabricLinks, CountsPerKind) {
  // Directed links: a ring of n has n pairs (2 ranks: one pair), an open line n - 1, a clique n(n-1)/2, a
  // crossbar n; d-dimensional kinds have them in every line of every axis.
  EXPECT_EQ(links(DimensionKind::ring, {8}), 16U);
  EXPECT_EQ(links(DimensionKind::ring, {3}), 6U);
  EXPECT_EQ(links(DimensionKind::ring, {2}), 2U);
  EXPECT_EQ(links(DimensionKind::fully_connected, {6}), 30U);
  EXPECT_EQ(links(DimensionKind::fully_connected, {2}), 2U);
  EXPECT_EQ(links(DimensionKind::switched, {8}), 16U);
  EXPECT_EQ(links(DimensionKind::mesh, {5}), 8U);
  EXPECT_EQ(links(DimensionKind::mesh, {3, 4}), 2U * (2 * 4 + 3 * 3));
  EXPECT_EQ(links(DimensionKind::torus, {4, 4}), 64U);
  EXPECT_EQ(links(DimensionKind::torus, {4, 2}), 2U * (4 * 2 + 1 * 4));  // an axis of 2 has one pair per line
  EXPECT_EQ(links(DimensionKind::torus, {3, 4, 5}), 2U * 3 * 60);
  EXPECT_EQ(links(DimensionKind::torus, {1, 4}), 8U);
  EXPECT_EQ(links(DimensionKind::ring, {1}), 0U);
}

TEST(FabricLinks, DimensionsRepeatInEveryLine) {
  const Fabric f = fabric({named_dimension("torus2d", DimensionKind::torus, {4, 4}),
                           named_dimension("ring", DimensionKind::ring, {4})});
  EXPECT_EQ(f.ranks(), 64);
  EXPECT_EQ(f.vertices(), 64);
  EXPECT_EQ(f.links().size(), 4U * 64 + 16U * 8);
  std::set<std::pair<std::int32_t, std::int32_t>> ends;
  for (const Link& link : f.links()) EXPECT_TRUE(ends.insert({link.source, link.destination}).second);
  for (const auto& [a, b] : ends) EXPECT_TRUE(ends.contains({b, a})) << a << ' ' << b;
}

TEST(FabricLinks, SwitchesFollowTheRanks) {
  // Two nodes of 4: switches 8 and 9 for the nodes, then one per rail, 10..13, by the rail's lowest rank.
  const Fabric f = fabric({named_dimension("nvswitch", DimensionKind::switched, {4}),
                           named_dimension("rail", DimensionKind::switched, {2})});
  EXPECT_EQ(f.ranks(), 8);
  EXPECT_EQ(f.vertices(), 8 + 2 + 4);
  EXPECT_EQ(visits(f, 1, 3), (std::vector{1, 8, 3}));
  EXPECT_EQ(visits(f, 5, 4), (std::vector{5, 9, 4}));
  EXPECT_EQ(visits(f, 2, 6), (std::vector{2, 12, 6}));
  EXPECT_EQ(visits(f, 1, 7), (std::vector{1, 8, 3, 13, 7}));  // lowest dimension first
}

TEST(FabricLinks, LinksCarryTheirDimension) {
  std::vector<DimensionSpec> dimensions = {named_dimension("fast", DimensionKind::fully_connected, {3}),
                                           named_dimension("slow", DimensionKind::ring, {4})};
  dimensions[1].bandwidth = BytesPerSecond(5e8);
  dimensions[1].latency = Seconds(7e-6);
  const Fabric f = fabric(dimensions);
  for (const Link& link : f.links()) {
    const bool slow = link.source / 3 != link.destination / 3;
    EXPECT_EQ(link.dimension, slow ? 1 : 0);
    EXPECT_EQ(link.bandwidth.value(), slow ? 5e8 : 1e9);
    EXPECT_EQ(link.latency.value(), slow ? 7e-6 : 1e-6);
  }
}

TEST(FabricLinks, IdsAreStable) {
  // The documented order on a ring of 3: (0,1) (1,0) (1,2) (2,1) (2,0) (0,2).
  const Fabric f = fabric({named_dimension("r", DimensionKind::ring, {3})});
  const std::vector<std::pair<std::int32_t, std::int32_t>> expected = {{0, 1}, {1, 0}, {1, 2},
                                                                       {2, 1}, {2, 0}, {0, 2}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(std::pair(f.links()[i].source, f.links()[i].destination), expected[i]) << i;
  }
}

TEST(FabricRoutes, RingTakesTheShorterWayAndHalfWayGoesUp) {
  const Fabric f = fabric({named_dimension("r", DimensionKind::ring, {6})});
  EXPECT_EQ(visits(f, 0, 2), (std::vector{0, 1, 2}));
  EXPECT_EQ(visits(f, 0, 4), (std::vector{0, 5, 4}));
  EXPECT_EQ(visits(f, 0, 3), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(visits(f, 3, 0), (std::vector{3, 4, 5, 0}));
  EXPECT_EQ(visits(f, 5, 2), (std::vector{5, 0, 1, 2}));
  EXPECT_EQ(visits(f, 4, 4), (std::vector{4}));
}

TEST(FabricRoutes, TorusTurnsAxisByAxis) {
  const Fabric f = fabric({named_dimension("t", DimensionKind::torus, {4, 4})});
  // (0,0) -> (3,2): one step down the first axis by wrapping, then half way up the second.
  EXPECT_EQ(visits(f, 0, 11), (std::vector{0, 3, 7, 11}));
  EXPECT_EQ(visits(f, 11, 0), (std::vector{11, 8, 12, 0}));
}

/// Expected hops of one axis: the definition of each kind's distance.
std::int32_t hops(DimensionKind kind, std::int64_t size, std::int64_t a, std::int64_t b) {
  if (a == b) return 0;
  const auto direct = static_cast<std::int32_t>(std::abs(a - b));
  switch (kind) {
    case DimensionKind::ring:
    case DimensionKind::torus:
      return std::min(direct, static_cast<std::int32_t>(size) - direct);
    case DimensionKind::mesh:
      return direct;
    case DimensionKind::fully_connected:
      return 1;
    case DimensionKind::switched:
      return 2;
    default:
      return -1;
  }
}

TEST(FabricRoutes, EveryPairOfManyFabrics) {
  using Kind = DimensionKind;
  const std::vector<std::vector<DimensionSpec>> fabrics = {
      {named_dimension("a", Kind::ring, {7})},
      {named_dimension("a", Kind::mesh, {3, 4})},
      {named_dimension("a", Kind::torus, {4, 3, 2})},
      {named_dimension("a", Kind::fully_connected, {5}), named_dimension("b", Kind::ring, {4})},
      {named_dimension("a", Kind::switched, {4}), named_dimension("b", Kind::switched, {3}),
       named_dimension("c", Kind::ring, {2})},
      {named_dimension("a", Kind::ring, {2}), named_dimension("b", Kind::mesh, {3}),
       named_dimension("c", Kind::fully_connected, {3})},
      {named_dimension("a", Kind::torus, {1, 4}), named_dimension("b", Kind::switched, {1}),
       named_dimension("c", Kind::ring, {3})}};
  for (std::size_t i = 0; i < fabrics.size(); ++i) {
    SCOPED_TRACE(i);
    const Fabric f = fabric(fabrics[i]);
    for (std::int32_t from = 0; from < f.ranks(); ++from) {
      for (std::int32_t to = 0; to < f.ranks(); ++to) {
        std::int32_t expected = 0;
        std::int64_t a = from, b = to;
        for (const DimensionSpec& d : fabrics[i]) {
          for (const std::int64_t extent : d.shape) {
            expected += hops(d.kind, extent, a % extent, b % extent);
            a /= extent;
            b /= extent;
          }
        }
        EXPECT_EQ(visits(f, from, to).size(), static_cast<std::size_t>(expected) + 1) << from << ' ' << to;
      }
    }
  }
}

TEST(FabricNames, SayWhereALinkRuns) {
  const Fabric f = fabric({named_dimension("nvswitch", DimensionKind::switched, {2}),
                           named_dimension("torus2d", DimensionKind::torus, {3, 3}),
                           named_dimension("rail", DimensionKind::switched, {2})});
  std::map<std::string, int> names;
  for (std::size_t i = 0; i < f.links().size(); ++i) ++names[f.link_name(static_cast<std::int32_t>(i))];
  EXPECT_EQ(names.size(), f.links().size());  // no two links share a name
  EXPECT_EQ(f.link_name(0), "nvswitch: 0 -> switch 0");
  EXPECT_EQ(f.link_name(1), "nvswitch: switch 0 -> 0");
  EXPECT_EQ(names.count("nvswitch: 35 -> switch 17"), 1U);
  EXPECT_EQ(names.count("torus2d: 0 -> 2"), 1U);
  EXPECT_EQ(names.count("rail: 35 -> switch 17"), 1U);
  EXPECT_EQ(names.count("rail: switch 0 -> 18"), 1U);
  EXPECT_EQ(f.vertex_name(35), "35");
}

}  // namespace
}  // namespace shardscape::network
