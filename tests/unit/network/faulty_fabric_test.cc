// Do sick links change exactly what they should, and do dead ones send only their own pairs round?
#include "engine/network/fabric/faulty_fabric.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/fabrics.h"

namespace shardscape::network {
namespace {

using K = DimensionKind;
using Route = std::vector<std::int32_t>;

FaultSet removed(const Fabric& f, std::int32_t a, std::int32_t b,
                 FaultDirections directions = FaultDirections::both) {
  FaultSet faults;
  add_fault(faults, f, {f.find_link(a, b), 1, Seconds(0), true}, directions);
  return faults;
}

std::int64_t dead_links(const FaultyFabric& f) {
  std::int64_t dead = 0;
  for (std::int32_t link = 0; link < std::ssize(f.fabric().links()); ++link) dead += f.dead(link) ? 1 : 0;
  return dead;
}

Route detoured(FaultyFabric& f, std::int32_t from, std::int32_t to) {
  std::vector<std::int32_t> path;
  EXPECT_TRUE(f.append_route(from, to, path));
  return vertices_along(f.fabric(), from, path);
}

TEST(FaultyFabric, HealthyIsTheFabricItself) {
  const Fabric f = fabric_of({dimension_of("t", K::torus, {3, 3})});
  FaultyFabric faulty(f);
  EXPECT_FALSE(faulty.faulty());
  EXPECT_EQ(detoured(faulty, 0, 5), visited(f, 0, 5));
  EXPECT_EQ(faulty.bytes_per_second()[0], 1e9);
}

TEST(FaultyFabric, FaultsOfOneLinkAddUp) {
  const Fabric f = fabric_of({dimension_of("r", K::ring, {4})});
  FaultyFabric faulty(f);
  FaultSet faults;
  add_fault(faults, f, {2, 0.5, Seconds(3e-6)}, FaultDirections::both);
  add_fault(faults, f, {2, 0.5, Seconds(1e-6)}, FaultDirections::one);
  faulty.set_faults(faults);
  EXPECT_TRUE(faulty.faulty());
  EXPECT_FALSE(faulty.cut());
  EXPECT_DOUBLE_EQ(faulty.bytes_per_second()[2], 0.25e9);
  EXPECT_DOUBLE_EQ(faulty.latency_seconds()[2], 5e-6);
  EXPECT_DOUBLE_EQ(faulty.bytes_per_second()[3], 0.5e9);
  EXPECT_DOUBLE_EQ(faulty.latency_seconds()[3], 4e-6);
  EXPECT_EQ(detoured(faulty, 1, 2), (Route{1, 2}));  // a slow link keeps its traffic
  faulty.set_faults({});
  EXPECT_EQ(faulty.bytes_per_second()[2], 1e9);
  EXPECT_EQ(faulty.latency_seconds()[3], 1e-6);
}

TEST(FaultyFabric, DeadLinkOfARingSendsItsPairsTheOtherWay) {
  const Fabric f = fabric_of({dimension_of("r", K::ring, {6})});
  FaultyFabric faulty(f);
  faulty.set_faults(removed(f, 1, 2));
  EXPECT_TRUE(faulty.cut());
  EXPECT_EQ(detoured(faulty, 0, 2), (Route{0, 5, 4, 3, 2}));
  EXPECT_EQ(detoured(faulty, 2, 1), (Route{2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(detoured(faulty, 2, 4), (Route{2, 3, 4}));
  EXPECT_EQ(detoured(faulty, 0, 1), (Route{0, 1}));
}

TEST(FaultyFabric, OneDirectionOnly) {
  const Fabric f = fabric_of({dimension_of("r", K::ring, {4})});
  FaultyFabric faulty(f);
  faulty.set_faults(removed(f, 0, 1, FaultDirections::one));
  EXPECT_EQ(detoured(faulty, 0, 1), (Route{0, 3, 2, 1}));
  EXPECT_EQ(detoured(faulty, 1, 0), (Route{1, 0}));
}

TEST(FaultyFabric, TiesGoToTheLowestNeighbour) {
  // 5 -> 6 in a 4x4 torus: around over the row below (1, 2) or above (9, 10).
  const Fabric f = fabric_of({dimension_of("t", K::torus, {4, 4})});
  FaultyFabric faulty(f);
  faulty.set_faults(removed(f, 5, 6));
  EXPECT_EQ(detoured(faulty, 5, 6), (Route{5, 1, 2, 6}));
  EXPECT_EQ(detoured(faulty, 4, 6), (Route{4, 7, 6}));  // the other way round is no longer
}

TEST(FaultyFabric, RanksOfferAWayRoundADeadRail) {
  // Two nodes of two: without 0's rail wire 0 -> 2 goes over 1 and its rail.
  const Fabric f =
      fabric_of({dimension_of("node", K::switched, {2}), dimension_of("rail", K::switched, {2})});
  FaultyFabric faulty(f);
  faulty.set_faults(removed(f, 0, 6));
  EXPECT_EQ(detoured(faulty, 0, 2), (Route{0, 4, 1, 7, 3, 5, 2}));
}

TEST(FaultyFabric, UnreachableNamesThePairAndTheCut) {
  const Fabric f = fabric_of({dimension_of("m", K::mesh, {4})});
  FaultyFabric faulty(f);
  FaultSet faults = removed(f, 1, 2);
  add_fault(faults, f, {f.find_link(2, 3), 1, Seconds(0), true}, FaultDirections::both);
  faulty.set_faults(faults);
  std::vector<std::int32_t> path = {7};
  EXPECT_FALSE(faulty.append_route(0, 3, path));
  EXPECT_FALSE(faulty.append_route(0, 3, path));  // the second answer comes from the memory
  EXPECT_EQ(path, std::vector<std::int32_t>{7});
  EXPECT_TRUE(faulty.append_route(0, 1, path));
  const Unreachable why = faulty.explain(0, 3);
  EXPECT_EQ(why.cut, std::vector<std::int32_t>{f.find_link(1, 2)});
  EXPECT_EQ(faulty.describe(why), "no way from 0 to 3: all links that lead on are dead (m: 1 -> 2)");
}

TEST(FaultyFabric, NewFaultsForgetOldDetours) {
  const Fabric f = fabric_of({dimension_of("r", K::ring, {4})});
  FaultyFabric faulty(f);
  faulty.set_faults(removed(f, 0, 1));
  EXPECT_EQ(detoured(faulty, 0, 1).size(), 4U);
  faulty.set_faults(removed(f, 2, 3));
  EXPECT_EQ(detoured(faulty, 0, 1).size(), 2U);
  EXPECT_EQ(detoured(faulty, 2, 3).size(), 4U);
  EXPECT_EQ(dead_links(faulty), 2);
}

TEST(FaultyFabric, RemovalWinsOverOtherFaults) {
  const Fabric f = fabric_of({dimension_of("r", K::ring, {3})});
  FaultyFabric faulty(f);
  FaultSet faults;
  faults.links = {{0, 0.5, Seconds(0)}, {0, 1, Seconds(0), true}, {0, 0.5, Seconds(0)}};
  faulty.set_faults(faults);
  EXPECT_TRUE(faulty.dead(0));
  EXPECT_FALSE(faulty.dead(1));
  EXPECT_EQ(dead_links(faulty), 1);
  EXPECT_EQ(faulty.bytes_per_second()[0], 1e9);
}

TEST(FaultyFabric, ALinkRemovedTwiceIsNamedOnce) {
  const Fabric f = fabric_of({dimension_of("m", K::mesh, {2})});
  FaultyFabric faulty(f);
  const std::int32_t link = f.find_link(0, 1);
  FaultSet faults;
  faults.links = {{link, 0.5, Seconds(0)}, {link, 1, Seconds(0), true}, {link, 1, Seconds(0), true}};
  faulty.set_faults(faults);
  EXPECT_EQ(faulty.explain(0, 1).cut, std::vector<std::int32_t>{link});
}

TEST(FaultyFabric, AFaultOfALinkOfSeveralWiresIsOneOfTheWires) {
  // Leaves of four wires up: half of one is left, or one is gone, and both, one wire each. No route changes.
  DimensionSpec tree = fat_tree_of("t", 16, 2, 8);
  tree.fat_tree.up_routing = UpRouting::adaptive;
  const Fabric f = fabric_of({tree});
  std::vector<std::int32_t> path;
  f.append_route(0, 8, path);
  ASSERT_EQ(path.size(), 4U);
  const std::int32_t up = path[1];
  const double whole = f.links()[static_cast<std::size_t>(up)].bandwidth.value();
  const auto left = [&](const std::vector<LinkFault>& faults) {
    FaultyFabric faulty(f);
    faulty.set_faults({faults});
    std::vector<std::int32_t> now;
    EXPECT_TRUE(faulty.append_route(0, 8, now));
    EXPECT_EQ(now, path);
    return faulty.bytes_per_second()[static_cast<std::size_t>(up)] / whole;
  };
  const LinkFault half{.link = up, .derate = 0.5}, gone{.link = up, .removed = true};
  EXPECT_DOUBLE_EQ(left({half}), 7.0 / 8);
  EXPECT_DOUBLE_EQ(left({gone}), 3.0 / 4);
  EXPECT_DOUBLE_EQ(left({half, gone}), 7.0 / 8 * 3 / 4);
}

}  // namespace
}  // namespace shardscape::network
