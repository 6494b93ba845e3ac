// Are the kinds beyond rings and switches wired and routed as their definitions say?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/network/fabric/fabric.h"
#include "tests/support/fabrics.h"

namespace shardscape::network {
namespace {

using K = DimensionKind;
using Route = std::vector<std::int32_t>;

TEST(KingMesh, LinkCounts) {
  // A grid of a x b has a(b-1) + b(a-1) straight and 2(a-1)(b-1) diagonal neighbour pairs.
  EXPECT_EQ(fabric_of({dimension_of("k", K::king_mesh, {5})}).links().size(), 8U);
  EXPECT_EQ(fabric_of({dimension_of("k", K::king_mesh, {3, 4})}).links().size(), 2U * (9 + 8 + 2 * 2 * 3));
  // 2 x 2 x 2: everyone touches everyone.
  EXPECT_EQ(fabric_of({dimension_of("k", K::king_mesh, {2, 2, 2})}).links().size(), 8U * 7);
  EXPECT_EQ(fabric_of({dimension_of("k", K::king_mesh, {1, 4})}).links().size(), 6U);
}

TEST(KingMesh, DiagonalStepsComeFirst) {
  const Fabric f = fabric_of({dimension_of("k", K::king_mesh, {8, 8})});
  EXPECT_EQ(visited(f, 0, 8 * 2 + 5), (Route{0, 9, 18, 19, 20, 21}));
  EXPECT_EQ(visited(f, 8 * 7 + 7, 8 * 4), (Route{63, 54, 45, 36, 35, 34, 33, 32}));
  const Fabric cube = fabric_of({dimension_of("k", K::king_mesh, {4, 4, 4})});
  // (0,3,0) -> (3,1,1): all three axes, then two, then one.
  EXPECT_EQ(visited(cube, 12, 3 + 4 + 16), (Route{12, 1 + 8 + 16, 2 + 4 + 16, 3 + 4 + 16}));
}

TEST(Hypercube, LinkCountsAndLowestBitFirst) {
  for (const std::int64_t bits : {1, 2, 3, 6}) {
    const std::int64_t n = std::int64_t{1} << bits;
    const Fabric f = fabric_of({dimension_of("h", K::hypercube, {n})});
    EXPECT_EQ(f.links().size(), static_cast<std::size_t>(n * bits));
    ASSERT_EQ(f.axes().size(), 1U);
    EXPECT_EQ(f.axes()[0].size, n);
  }
  const Fabric f = fabric_of({dimension_of("h", K::hypercube, {16})});
  EXPECT_EQ(visited(f, 0, 13), (Route{0, 1, 5, 13}));
  EXPECT_EQ(visited(f, 15, 4), (Route{15, 14, 12, 4}));
}

TEST(FatTree, CountsOfAFullTree) {
  // Three levels of radix 4: 16 hosts, 8 leaves, 8 spines, 4 cores; 16 wires at each level, both ways.
  const Fabric f = fabric_of({fat_tree_of("t", 16, 3, 4)});
  EXPECT_EQ(f.vertices(), 16 + 8 + 8 + 4);
  EXPECT_EQ(f.links().size(), 2U * 16 * 3);
  std::map<std::int32_t, int> ports;
  for (const Link& link : f.links()) ++ports[link.source];
  for (std::int32_t v = 0; v < f.vertices(); ++v) EXPECT_EQ(ports[v], v < 16 ? 1 : 4) << v;
}

TEST(FatTree, OversubscribedLeavesHaveFewerWiresUp) {
  // Radix 8 at 3 : 1 is 6 down and 2 up; 18 hosts are 3 leaves under 2 spines.
  const Fabric f = fabric_of({fat_tree_of("t", 18, 2, 8, 3)});
  EXPECT_EQ(f.vertices(), 18 + 3 + 2);
  EXPECT_EQ(f.links().size(), 2U * (18 + 3 * 2));
}

TEST(FatTree, PortsBeyondTheRatioStayEmpty) {
  // 2:1 on 32 ports: leaves of 20 ranks and 10 wires up, two ports of each unused. 3 leaves, 10 spines.
  const Fabric f = fabric_of({fat_tree_of("t", 60, 2, 32, 2)});
  EXPECT_EQ(f.vertices(), 60 + 3 + 10);
  EXPECT_EQ(f.links().size(), 2U * (60 + 3 * 10));
}

TEST(FatTree, OnlyWhatTheRanksNeedIsBuilt) {
  // Five hosts on leaves of two: three leaves, the last half empty, two spines.
  const Fabric f = fabric_of({fat_tree_of("t", 5, 2, 4)});
  EXPECT_EQ(f.vertices(), 5 + 3 + 2);
  EXPECT_EQ(f.links().size(), 2U * (5 + 3 * 2));
  EXPECT_EQ(fabric_of({fat_tree_of("t", 4, 1, 4)}).vertices(), 5);
}

TEST(FatTree, RoutesTurnAtTheLowestCommonLevel) {
  const Fabric f = fabric_of({fat_tree_of("t", 16, 3, 4)});
  for (std::int32_t a = 0; a < 16; ++a) {
    for (std::int32_t b = 0; b < 16; ++b) {
      const std::size_t hops = a == b ? 0 : a / 2 == b / 2 ? 2 : a / 4 == b / 4 ? 4 : 6;
      const Route route = visited(f, a, b);
      EXPECT_EQ(route.size(), hops + 1) << a << ' ' << b;
      EXPECT_EQ(route.back(), b);
    }
  }
}

/// The most flows on one link when every rank i sends to (i + shift) % ranks.
int worst_load(const Fabric& f, std::int32_t shift) {
  std::vector<std::int32_t> path;
  for (std::int32_t i = 0; i < f.ranks(); ++i) f.append_route(i, (i + shift) % f.ranks(), path);
  std::vector<int> load(f.links().size(), 0);
  for (const std::int32_t link : path) ++load[static_cast<std::size_t>(link)];
  return *std::ranges::max_element(load);
}

TEST(FatTree, FullBisectionWhereNotOversubscribed) {
  // Destination routing on a full tree carries every shift pattern without contention.
  for (const auto& [size, levels, radix] :
       {std::tuple{16, 3, 4}, std::tuple{54, 3, 6}, std::tuple{32, 2, 8}, std::tuple{128, 3, 8}}) {
    const Fabric f = fabric_of({fat_tree_of("t", size, levels, radix)});
    for (std::int32_t shift = 1; shift < f.ranks(); ++shift) {
      ASSERT_EQ(worst_load(f, shift), 1) << size << " shift " << shift;
    }
  }
}

TEST(FatTree, OversubscriptionIsTheContentionOfARemoteShift) {
  // 48 hosts on 8 leaves of 6 down and 2 up: moving everything to the next leaf puts 6 flows on 2 wires.
  EXPECT_EQ(worst_load(fabric_of({fat_tree_of("t", 48, 2, 8, 3)}), 6), 3);
}

TEST(FatTree, DestinationRoutingIsAForwardingTable) {
  // At any switch the way on depends on the destination only.
  const Fabric f = fabric_of({fat_tree_of("t", 40, 3, 6)});
  for (std::int32_t b = 0; b < f.ranks(); ++b) {
    std::map<std::int32_t, std::int32_t> next;
    for (std::int32_t a = 0; a < f.ranks(); ++a) {
      const Route route = visited(f, a, b);
      for (std::size_t i = 0; i + 1 < route.size(); ++i) {
        const auto [it, fresh] = next.emplace(route[i], route[i + 1]);
        ASSERT_EQ(it->second, route[i + 1]) << a << " -> " << b << " at " << route[i];
      }
    }
  }
}

TEST(FatTree, EcmpChoosesByTheDocumentedHash) {
  DimensionSpec d = fat_tree_of("t", 24, 2, 8);
  d.fat_tree.up_routing = UpRouting::ecmp;
  const Fabric f = fabric_of({d});
  const std::int32_t first_spine = 24 + 6;
  std::set<std::int32_t> spines;
  for (std::int32_t a = 0; a < 24; ++a) {
    for (std::int32_t b = 0; b < 24; ++b) {
      if (a / 4 == b / 4) continue;
      std::uint64_t x = (static_cast<std::uint64_t>(a) << 32) + static_cast<std::uint64_t>(b);
      x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
      x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
      x ^= x >> 31;
      const Route route = visited(f, a, b);
      ASSERT_EQ(route.size(), 5U);
      EXPECT_EQ(route[2], first_spine + static_cast<std::int32_t>(x % 4)) << a << ' ' << b;
      spines.insert(route[2]);
    }
  }
  EXPECT_EQ(spines.size(), 4U);
}

DimensionSpec adaptive_tree(std::int64_t size, std::int64_t levels, std::int64_t radix,
                            double oversubscription = 1) {
  DimensionSpec d = fat_tree_of("t", size, levels, radix, oversubscription);
  d.fat_tree.up_routing = UpRouting::adaptive;
  return d;
}

/// Seconds that the busiest link takes for a byte from each rank to the one that `to` names, over those of the ranks'
/// own links.
double worst_share(const Fabric& f, const std::vector<std::int32_t>& to) {
  std::vector<std::int32_t> path;
  for (std::int32_t i = 0; i < f.ranks(); ++i) f.append_route(i, to[static_cast<std::size_t>(i)], path);
  std::vector<double> load(f.links().size());
  for (const std::int32_t link : path) load[static_cast<std::size_t>(link)] += 1;
  double worst = 0;
  for (std::size_t link = 0; link < load.size(); ++link)
    worst = std::max(worst, load[link] / f.links()[link].bandwidth.value());
  return worst * f.links().front().bandwidth.value();
}

TEST(FatTree, AdaptiveRoutingIsNowhereBusierInsideThanAtTheEnds) {
  // Each rank sends to one and receives from one: a full tree carries any such pattern (it can be rearranged without
  // blocking, Benes 1965). Tables by destination don't, for most patterns.
  CounterRng random(1, 1);
  int collide = 0;
  for (const auto& [size, levels, radix] :
       {std::tuple{16, 3, 4}, std::tuple{50, 3, 6}, std::tuple{32, 2, 8}, std::tuple{100, 3, 8}}) {
    const Fabric adaptive = fabric_of({adaptive_tree(size, levels, radix)});
    const Fabric tables = fabric_of({fat_tree_of("t", size, levels, radix)});
    std::vector<std::int32_t> to(static_cast<std::size_t>(size));
    std::iota(to.begin(), to.end(), 0);
    for (int i = 0; i < 20; ++i) {
      for (std::size_t r = to.size(); r > 1; --r) std::swap(to[r - 1], to[random.below(r)]);
      EXPECT_NEAR(worst_share(adaptive, to), 1, 1e-12) << size;
      collide += worst_share(tables, to) > 1.5 ? 1 : 0;
    }
  }
  EXPECT_GT(collide, 40);
}

TEST(FatTree, AdaptiveLinksHaveWhatTheirWiresHave) {
  // 18 hosts on leaves of 6 down and 2 up: a shift to the next leaf is three times what the wires up carry. 16 hosts in
  // three levels of radix 4: leaves of 2 wires up, blocks of 2 leaves with 4.
  const Fabric narrow = fabric_of({adaptive_tree(18, 2, 8, 3)});
  std::vector<std::int32_t> to;
  for (std::int32_t i = 0; i < 18; ++i) to.push_back((i + 6) % 18);
  EXPECT_NEAR(worst_share(narrow, to), 3, 1e-12);
  const Fabric f = fabric_of({adaptive_tree(16, 3, 4)});
  EXPECT_EQ(f.vertices(), 16 + 8 + 4 + 1);
  std::map<std::int32_t, int> links;
  for (const Link& link : f.links()) {
    ++links[link.strands];
    EXPECT_EQ(link.bandwidth.value(), 1e9 * link.strands);
  }
  EXPECT_EQ(links, (std::map<std::int32_t, int>{{1, 2 * 16}, {2, 2 * 8}, {4, 2 * 4}}));
}

TEST(FatTree, UplinksMayDiffer) {
  DimensionSpec d = fat_tree_of("t", 8, 2, 4);
  d.fat_tree.uplink_bandwidth = BytesPerSecond(4e9);
  d.fat_tree.uplink_latency = Seconds(2e-7);
  const Fabric f = fabric_of({d});
  for (const Link& link : f.links()) {
    const bool uplink = link.source >= 8 && link.destination >= 8;
    EXPECT_EQ(link.bandwidth.value(), uplink ? 4e9 : 1e9);
    EXPECT_EQ(link.latency.value(), uplink ? 2e-7 : 1e-6);
  }
}

TEST(FatTree, RailsAreDealtOverTheAdapters) {
  // Nodes of 4 on two rails: GPUs 0, 2 of every node in one tree, 1, 3 in the other. A leaf of 4 ports holds
  // two nodes of its rail.
  DimensionSpec rail = fat_tree_of("rail", 4, 2, 8);
  rail.rails = 2;
  const Fabric f = fabric_of({dimension_of("node", K::switched, {4}), rail});
  const std::int32_t first = 16 + 4;                  // after the ranks and the nodes' switches
  EXPECT_EQ(f.vertices(), first + 2 * (2 + 4));       // two leaves and four spines each
  EXPECT_EQ(visited(f, 0, 4), (Route{0, first, 4}));  // one leaf
  EXPECT_EQ(visited(f, 2, 6), (Route{2, first, 6}));
  EXPECT_EQ(visited(f, 1, 5), (Route{1, first + 6, 5}));
  EXPECT_EQ(visited(f, 3, 15).size(), 5U);  // over a spine
  EXPECT_EQ(visited(f, 0, 5).front(), 0);
  EXPECT_EQ(visited(f, 0, 5)[1], 16);  // first inside the node
}

TEST(Adapters, SharedOnesAreALimitOfTheirOwn) {
  // Nodes of 4 with 2 adapters: GPUs 0 and 1 share one. Per rail: switch, then an adapter per node.
  DimensionSpec rail = dimension_of("rail", K::switched, {3});
  rail.nics_per_node = 2;
  const Fabric f = fabric_of({dimension_of("node", K::fully_connected, {4}), rail});
  EXPECT_EQ(f.vertices(), 12 + 2 * (1 + 3));
  EXPECT_EQ(visited(f, 0, 8), (Route{0, 13, 12, 15, 8}));
  EXPECT_EQ(visited(f, 1, 9), (Route{1, 13, 12, 15, 9}));
  EXPECT_EQ(visited(f, 2, 10), (Route{2, 17, 16, 19, 10}));
  std::vector<std::int32_t> path;
  f.append_route(0, 8, path);
  double latency = 0;
  for (const std::int32_t link : path) latency += f.links()[static_cast<std::size_t>(link)].latency.value();
  EXPECT_DOUBLE_EQ(latency, 2e-6);  // the same as with an adapter for each endpoint
  EXPECT_EQ(f.link_name(path[1]), "rail: 0.adapter 0 -> 0.switch");
}

TEST(Adapters, SeveralPerGpuAddUp) {
  DimensionSpec rail = dimension_of("rail", K::switched, {3});
  rail.nics_per_node = 8;
  const Fabric f = fabric_of({dimension_of("node", K::fully_connected, {4}), rail});
  EXPECT_EQ(f.links().back().bandwidth.value(), 2e9);
}

TEST(Bandwidth, PerGpuIsSharedByItsLinks) {
  const auto link_bandwidth = [](DimensionSpec d) {
    d.basis = BandwidthBasis::gpu;
    d.bandwidth = BytesPerSecond(12e9);
    return fabric_of({d}).links().back().bandwidth.value();
  };
  EXPECT_EQ(link_bandwidth(dimension_of("d", K::fully_connected, {5})), 3e9);
  EXPECT_EQ(link_bandwidth(dimension_of("d", K::ring, {4})), 6e9);
  EXPECT_EQ(link_bandwidth(dimension_of("d", K::ring, {2})), 12e9);
  EXPECT_EQ(link_bandwidth(dimension_of("d", K::torus, {4, 2})), 4e9);
  EXPECT_EQ(link_bandwidth(dimension_of("d", K::hypercube, {16})), 3e9);
  EXPECT_EQ(link_bandwidth(dimension_of("d", K::switched, {16})), 12e9);
  // An adapter that two GPUs share has the bandwidth of both.
  DimensionSpec rail = dimension_of("rail", K::switched, {2});
  rail.nics_per_node = 2;
  rail.basis = BandwidthBasis::gpu;
  const Fabric f = fabric_of({dimension_of("node", K::switched, {4}), rail});
  EXPECT_EQ(f.links().back().bandwidth.value(), 2e9);
}

TEST(Dragonfly, CountsAndDiameter) {
  for (const auto& [groups, routers, hosts] :
       {std::tuple{9, 4, 2}, std::tuple{5, 4, 3}, std::tuple{2, 3, 1}, std::tuple{1, 4, 2},
        std::tuple{7, 1, 2}, std::tuple{12, 3, 1}}) {
    SCOPED_TRACE(::testing::Message() << groups << ' ' << routers << ' ' << hosts);
    const Fabric f = fabric_of({dragonfly_of("d", groups, routers, hosts)});
    const auto n = static_cast<std::size_t>(groups * routers * hosts);
    EXPECT_EQ(f.links().size(), 2 * n + static_cast<std::size_t>(groups * routers * (routers - 1)) +
                                    static_cast<std::size_t>(groups * (groups - 1)));
    EXPECT_EQ(f.vertices(), static_cast<std::int32_t>(n) + groups * routers);
    // Wires between groups are spread evenly over the routers of each.
    const auto group = [&, g = routers](std::int32_t router) { return (router - f.ranks()) / g; };
    std::map<std::int32_t, int> global;
    for (const Link& l : f.links()) {
      if (l.source >= f.ranks() && l.destination >= f.ranks() && group(l.source) != group(l.destination))
        ++global[l.source];
    }
    for (std::int32_t r = 0; groups > 1 && r < groups * routers; ++r) {
      EXPECT_LE(global[f.ranks() + r], (groups - 2) / routers + 1);
      EXPECT_GE(global[f.ranks() + r], (groups - 1) / routers);
    }
    for (std::int32_t a = 0; a < f.ranks(); ++a) {
      for (std::int32_t b = 0; b < f.ranks(); ++b) {
        if (a == b) continue;
        const Route route = visited(f, a, b);
        ASSERT_EQ(route.back(), b);
        ASSERT_LE(route.size(), 2U + 4U);  // host, at most four routers, host: three router hops
        int crossings = 0;
        for (std::size_t i = 1; i + 2 < route.size(); ++i)
          crossings += group(route[i]) != group(route[i + 1]);
        ASSERT_EQ(crossings, group(route[1]) == group(route[route.size() - 2]) ? 0 : 1);
      }
    }
  }
}

TEST(Dragonfly, GlobalLinksMayDiffer) {
  DimensionSpec d = dragonfly_of("d", 3, 2, 2);
  d.dragonfly.global_bandwidth = BytesPerSecond(7e9);
  d.dragonfly.global_latency = Seconds(5e-6);
  const Fabric f = fabric_of({d});
  EXPECT_EQ(f.links().back().bandwidth.value(), 7e9);
  EXPECT_EQ(f.links().back().latency.value(), 5e-6);
  EXPECT_EQ(f.links().front().bandwidth.value(), 1e9);
  EXPECT_EQ(f.link_name(static_cast<std::int32_t>(f.links().size()) - 2),
            "d: router 1 of group 1 -> router 1 of group 2");
}

TEST(Custom, FewestHopsThenTheLowestNeighbour) {
  // 0 reaches 3 over 1, 2 or switch 4 in two hops; 1 is the lowest.
  const Fabric f = fabric_of(
      {custom_of("c", 4, 1, {wire(0, 4), wire(4, 3), wire(0, 2), wire(2, 3), wire(1, 3), wire(0, 1)})});
  EXPECT_EQ(f.vertices(), 5);
  EXPECT_EQ(visited(f, 0, 3), (Route{0, 1, 3}));
  EXPECT_EQ(visited(f, 3, 0), (Route{3, 1, 0}));
  EXPECT_EQ(visited(f, 1, 2), (Route{1, 0, 2}));
}

TEST(Custom, OneWayLinksAndTheirOpposites) {
  CustomSpec::Link back = wire(1, 0, true);
  back.bandwidth = BytesPerSecond(5e8);
  const Fabric f =
      fabric_of({custom_of("c", 3, 0, {wire(0, 1, true), wire(1, 2, true), wire(2, 0, true), back})});
  EXPECT_EQ(visited(f, 2, 1), (Route{2, 0, 1}));
  EXPECT_EQ(visited(f, 1, 0), (Route{1, 0}));
  EXPECT_EQ(f.reverse_of(0), 3);
  EXPECT_EQ(f.reverse_of(3), 0);
  EXPECT_EQ(f.reverse_of(1), -1);
  EXPECT_EQ(f.links()[3].bandwidth.value(), 5e8);
}

TEST(Custom, RepeatsInEveryLine) {
  const Fabric f =
      fabric_of({dimension_of("ring", K::ring, {3}), custom_of("c", 2, 1, {wire(0, 2), wire(2, 1)})});
  EXPECT_EQ(f.vertices(), 6 + 3);
  EXPECT_EQ(visited(f, 1, 4), (Route{1, 7, 4}));
  EXPECT_EQ(f.link_name(f.find_link(1, 7)), "c: 1 -> 1.switch 0");
}

TEST(Axes, DescribeCoordinatesOfEveryKind) {
  const Fabric f = fabric_of({dimension_of("k", K::king_mesh, {2, 3}), dimension_of("t", K::torus, {4, 3}),
                              fat_tree_of("f", 3, 2, 4), dragonfly_of("d", 2, 2, 1)});
  const std::vector<std::pair<std::int32_t, std::int32_t>> expected = {
      {6, 1}, {4, 6}, {3, 24}, {3, 72}, {4, 216}};
  ASSERT_EQ(f.axes().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(std::pair(f.axes()[i].size, f.axes()[i].stride), expected[i]) << i;
  }
}

TEST(Reverse, IsTheOtherDirectionOfTheSamePair) {
  const Fabric f = fabric_of({dimension_of("k", K::king_mesh, {3, 3}), dimension_of("h", K::hypercube, {4}),
                              fat_tree_of("f", 3, 2, 4), dimension_of("s", K::switched, {2})});
  for (std::size_t i = 0; i < f.links().size(); ++i) {
    const std::int32_t back = f.reverse_of(static_cast<std::int32_t>(i));
    ASSERT_GE(back, 0);
    const Link& there = f.links()[i];
    const Link& again = f.links()[static_cast<std::size_t>(back)];
    EXPECT_EQ(std::pair(there.source, there.destination), std::pair(again.destination, again.source));
    EXPECT_EQ(there.dimension, again.dimension);
  }
}

TEST(Names, AreUniqueForEveryKind) {
  DimensionSpec shared = dimension_of("shared", K::switched, {2});
  shared.nics_per_node = 1;
  for (const std::vector<DimensionSpec>& dimensions : std::vector<std::vector<DimensionSpec>>{
           {dimension_of("k", K::king_mesh, {3, 2}), fat_tree_of("f", 9, 3, 4)},
           {dragonfly_of("d", 3, 2, 2), dimension_of("h", K::hypercube, {4})},
           {dimension_of("r", K::ring, {2}), shared,
            custom_of("c", 2, 2, {wire(0, 2), wire(1, 3), wire(2, 3)})}}) {
    const Fabric f = fabric_of(dimensions);
    std::set<std::string> names;
    for (std::size_t i = 0; i < f.links().size(); ++i)
      names.insert(f.link_name(static_cast<std::int32_t>(i)));
    EXPECT_EQ(names.size(), f.links().size());
  }
}

TEST(LargeFabric, SixteenThousandRanks) {
  // 2,048 nodes of 8, eight rails of 64 leaves and 32 spines: every rank has a wire to its NVSwitch and one
  // to its leaf, and every leaf 32 to the spines.
  const Fabric f = fabric_of({dimension_of("nvswitch", K::switched, {8}), fat_tree_of("rail", 2048, 2, 64)});
  EXPECT_EQ(f.ranks(), 16384);
  EXPECT_EQ(f.vertices(), 16384 + 2048 + 8 * (64 + 32));
  EXPECT_EQ(f.links().size(), 2U * (16384 + 16384 + 8 * 64 * 32));
  EXPECT_EQ(visited(f, 3, 8 * 31 + 3).size(), 3U);
  EXPECT_EQ(visited(f, 3, 8 * 32 + 3).size(), 5U);
  EXPECT_EQ(visited(f, 3, 16383).size(), 7U);
}

}  // namespace
}  // namespace shardscape::network
