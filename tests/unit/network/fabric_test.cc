#include "engine/network/fabric.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/fabrics.h"

namespace shardscape::network {
namespace {

using test::dimension;
using test::fabric;

/// Vertices of a route, or nothing where its links do not join.
std::vector<std::int32_t> vertices_of(const Fabric& f, std::int32_t source, std::int32_t destination) {
  std::vector<std::int32_t> path;
  f.append_route(source, destination, path);
  std::vector<std::int32_t> vertices = {source};
  for (const std::int32_t id : path) {
    const Link& link = f.links().at(static_cast<std::size_t>(id));
    if (link.source != vertices.back()) return {};
    vertices.push_back(link.destination);
  }
  return vertices;
}

TEST(FabricLinks, CountsAreTheClosedFormsOfTheirKinds) {
  const auto count = [](DimensionKind kind, std::vector<std::int64_t> shape) {
    return Fabric(fabric({dimension("d", kind, std::move(shape))})).links().size();
  };
  for (const std::int64_t n : {3, 4, 5, 8, 16}) {
    const auto s = static_cast<std::size_t>(n);
    EXPECT_EQ(count(DimensionKind::ring, {n}), 2 * s);
    EXPECT_EQ(count(DimensionKind::mesh, {n}), 2 * (s - 1));
    EXPECT_EQ(count(DimensionKind::switched, {n}), 2 * s);
    EXPECT_EQ(count(DimensionKind::fully_connected, {n}), s * (s - 1));
  }
  EXPECT_EQ(count(DimensionKind::ring, {2}), 2U);            // one pair, not two
  EXPECT_EQ(count(DimensionKind::torus, {4, 4}), 64U);       // 2 axes x 16 pairs x 2
  EXPECT_EQ(count(DimensionKind::torus, {2, 4}), 8U + 16U);  // 4 rings of two, 2 rings of four
  EXPECT_EQ(count(DimensionKind::mesh, {3, 4}), 2U * (2 * 4 + 3 * 3));
  EXPECT_EQ(count(DimensionKind::torus, {3, 3, 3}), 2U * 3 * 27);
}

TEST(FabricLinks, EveryDimensionRepeatsOnEachLine) {
  const Fabric f(fabric({dimension("nvlink", DimensionKind::switched, {4}, 300e9, 1e-6),
                         dimension("rail", DimensionKind::switched, {3}, 25e9, 2e-6)}));
  EXPECT_EQ(f.ranks(), 12);
  EXPECT_EQ(f.vertices(), 12 + 3 + 4);  // a switch per node, a switch per rail
  EXPECT_EQ(f.links().size(), 2U * 12 + 2U * 12);
  for (const Link& link : f.links()) {
    EXPECT_EQ(link.bandwidth.value(), link.dimension == 0 ? 300e9 : 25e9);
    EXPECT_EQ(link.latency.value(), link.dimension == 0 ? 1e-6 : 2e-6);
  }
}

TEST(FabricLinks, NoTwoLinksJoinTheSameVerticesInTheSameDirection) {
  for (const FabricSpec& spec : test::assorted_fabrics()) {
    const Fabric f(spec);
    std::set<std::pair<std::int32_t, std::int32_t>> ends;
    std::set<std::string> names;
    for (std::size_t i = 0; i < f.links().size(); ++i) {
      const Link& link = f.links()[i];
      EXPECT_TRUE(ends.insert({link.source, link.destination}).second) << test::describe(spec) << i;
      EXPECT_TRUE(names.insert(f.link_name(static_cast<std::int32_t>(i))).second)
          << test::describe(spec) << i;
    }
    for (const auto& [a, b] : ends) EXPECT_TRUE(ends.contains({b, a})) << test::describe(spec);
  }
}

TEST(FabricRoutes, AreConnectedAndFollowTheRoutingRules) {
  for (const FabricSpec& spec : test::assorted_fabrics()) {
    const Fabric f(spec);
    for (std::int32_t a = 0; a < f.ranks(); ++a) {
      for (std::int32_t b = 0; b < f.ranks(); ++b) {
        const std::vector<std::int32_t> vertices = vertices_of(f, a, b);
        ASSERT_FALSE(vertices.empty()) << test::describe(spec) << a << " to " << b;
        // The independent router walks coordinates and names switches by the ranks they join.
        std::vector<std::int32_t> ranks_only;
        for (const std::int32_t v : vertices) ranks_only.push_back(v < f.ranks() ? v : test::kSwitch);
        EXPECT_EQ(ranks_only, test::expected_route(spec, a, b)) << test::describe(spec) << a << " to " << b;
      }
    }
  }
}

TEST(FabricRoutes, ByHand) {
  const Fabric ring(fabric({dimension("r", DimensionKind::ring, {8})}));
  EXPECT_EQ(vertices_of(ring, 6, 1), (std::vector<std::int32_t>{6, 7, 0, 1}));
  EXPECT_EQ(vertices_of(ring, 1, 6), (std::vector<std::int32_t>{1, 0, 7, 6}));
  EXPECT_EQ(vertices_of(ring, 0, 4), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));  // half way goes +
  EXPECT_EQ(vertices_of(ring, 4, 0), (std::vector<std::int32_t>{4, 5, 6, 7, 0}));
  const Fabric torus(fabric({dimension("t", DimensionKind::torus, {4, 4})}));
  EXPECT_EQ(vertices_of(torus, 0, 15), (std::vector<std::int32_t>{0, 3, 15}));  // x first, both axes wrap
  const Fabric mesh(fabric({dimension("m", DimensionKind::mesh, {3, 3})}));
  EXPECT_EQ(vertices_of(mesh, 2, 6), (std::vector<std::int32_t>{2, 1, 0, 3, 6}));
  const Fabric full(fabric({dimension("f", DimensionKind::fully_connected, {5})}));
  EXPECT_EQ(vertices_of(full, 4, 1), (std::vector<std::int32_t>{4, 1}));
  const Fabric crossbar(fabric({dimension("s", DimensionKind::switched, {4})}));
  EXPECT_EQ(vertices_of(crossbar, 3, 1), (std::vector<std::int32_t>{3, 4, 1}));
}

TEST(FabricNames, AreReadable) {
  const Fabric f(fabric(
      {dimension("torus2d", DimensionKind::torus, {2, 2}), dimension("rail", DimensionKind::switched, {2})}));
  EXPECT_EQ(f.link_name(0), "torus2d: 0 -> 1");
  EXPECT_EQ(f.link_name(1), "torus2d: 1 -> 0");
  // 2 axes x 4 lines x 2 links, then the rails: rank 0 and its switch first.
  EXPECT_EQ(f.link_name(16), "rail: 0 -> switch 0");
  EXPECT_EQ(f.link_name(17), "rail: switch 0 -> 0");
  EXPECT_EQ(f.vertex_name(7), "7");
  EXPECT_EQ(f.vertex_name(11), "switch 3");
}

TEST(FabricOfOneRank, HasNoLinksAndEmptyRoutes) {
  const Fabric f(FabricSpec{});
  EXPECT_EQ(f.ranks(), 1);
  EXPECT_TRUE(f.links().empty());
  EXPECT_EQ(vertices_of(f, 0, 0), std::vector<std::int32_t>{0});
}

}  // namespace
}  // namespace shardscape::network
