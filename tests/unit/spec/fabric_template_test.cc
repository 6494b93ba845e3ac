// Does a cluster of any size become the fabric that its builder would wire for that many GPUs?
#include <gtest/gtest.h>

#include <vector>

#include "engine/spec/fabric_spec.h"

namespace shardscape {
namespace {

using Extent = std::vector<std::int64_t>;

FabricTemplate dgx(DimensionKind innermost = DimensionKind::switched) {
  FabricTemplate cluster;
  cluster.fabric.name = "dgx";
  cluster.fabric.dimensions = {
      {"nvswitch", innermost, {8}, BytesPerSecond(300e9), Seconds(1e-6), LinkScope::scale_up},
      {"rail",
       DimensionKind::switched,
       {FabricTemplate::kFill},
       BytesPerSecond(25e9),
       Seconds(2e-6),
       LinkScope::scale_out}};
  return cluster;
}

/// Shapes of the dimensions that result; fails the test where there are problems.
std::vector<Extent> shapes(const FabricTemplate& cluster, std::int64_t gpus) {
  Problems problems;
  const FabricSpec fabric = cluster.instantiate(gpus, problems);
  for (const Problem& problem : problems.list()) ADD_FAILURE() << gpus << ": " << problem.message;
  EXPECT_EQ(fabric.size(), gpus);
  std::vector<Extent> result;
  for (const DimensionSpec& dimension : fabric.dimensions) result.push_back(dimension.shape);
  return result;
}

bool fits(const FabricTemplate& cluster, std::int64_t gpus) {
  Problems problems;
  (void)cluster.instantiate(gpus, problems);
  for (const Problem& problem : problems.list()) EXPECT_EQ(problem.field, "gpus");
  return problems.empty();
}

TEST(FabricTemplate, OpenDimensionTakesTheRest) {
  EXPECT_TRUE(dgx().open());
  EXPECT_EQ(shapes(dgx(), 64), (std::vector<Extent>{{8}, {8}}));
  EXPECT_EQ(shapes(dgx(), 1024), (std::vector<Extent>{{8}, {128}}));
  EXPECT_EQ(shapes(dgx(), 16), (std::vector<Extent>{{8}, {2}}));
}

TEST(FabricTemplate, OneNodeHasNoRail) { EXPECT_EQ(shapes(dgx(), 8), (std::vector<Extent>{{8}})); }

TEST(FabricTemplate, PartOfASwitchOrCliqueIsAFabric) {
  EXPECT_EQ(shapes(dgx(), 4), (std::vector<Extent>{{4}}));
  EXPECT_EQ(shapes(dgx(), 3), (std::vector<Extent>{{3}}));
  EXPECT_EQ(shapes(dgx(), 1), std::vector<Extent>{});
  EXPECT_EQ(shapes(dgx(DimensionKind::fully_connected), 4), (std::vector<Extent>{{4}}));
}

TEST(FabricTemplate, WhatDoesNotFitIsAProblem) {
  EXPECT_FALSE(fits(dgx(), 12));                    // a node and a half
  EXPECT_FALSE(fits(dgx(DimensionKind::ring), 4));  // half a ring is no ring
  EXPECT_FALSE(fits(dgx(), 0));
  EXPECT_FALSE(fits(dgx(), -8));
}

TEST(FabricTemplate, PartialInnermostNeedsExactlyTwoDimensions) {
  FabricTemplate cluster = dgx();
  cluster.fabric.dimensions.insert(
      cluster.fabric.dimensions.begin() + 1,
      {"board", DimensionKind::ring, {4}, BytesPerSecond(1e11), Seconds(1e-6), LinkScope::scale_up});
  EXPECT_EQ(shapes(cluster, 64), (std::vector<Extent>{{8}, {4}, {2}}));
  EXPECT_EQ(shapes(cluster, 32), (std::vector<Extent>{{8}, {4}}));
  EXPECT_FALSE(fits(cluster, 4));
  EXPECT_FALSE(fits(cluster, 48));
}

TEST(FabricTemplate, ClosedClusterHasItsOwnSize) {
  FabricTemplate cluster;
  cluster.fabric.name = "torus";
  cluster.fabric.dimensions = {{"torus", DimensionKind::torus, {4, 4}, BytesPerSecond(1e11), Seconds(1e-6)},
                               {"ring", DimensionKind::ring, {4}, BytesPerSecond(25e9), Seconds(1e-6)}};
  EXPECT_FALSE(cluster.open());
  EXPECT_EQ(shapes(cluster, 64), (std::vector<Extent>{{4, 4}, {4}}));
  EXPECT_FALSE(fits(cluster, 32));
  EXPECT_FALSE(fits(cluster, 128));
  EXPECT_FALSE(fits(cluster, 0));
}

TEST(FabricTemplate, KeepsLinksAndScopes) {
  Problems problems;
  const FabricSpec fabric = dgx().instantiate(32, problems);
  ASSERT_EQ(fabric.dimensions.size(), 2U);
  EXPECT_EQ(fabric.dimensions[1].name, "rail");
  EXPECT_EQ(fabric.dimensions[1].scope, LinkScope::scale_out);
  EXPECT_EQ(fabric.dimensions[1].bandwidth, BytesPerSecond(25e9));
  EXPECT_EQ(fabric.dimensions[0].latency, Seconds(1e-6));
}

/// Racks of 72 in trays of 4.
FabricTemplate racks() {
  FabricTemplate cluster = dgx();
  cluster.fabric.dimensions[0].shape = {72};
  cluster.fabric.dimensions[0].gpus_per_tray = 4;
  return cluster;
}

TEST(FabricTemplate, JobsTakeAsManyWholeTraysOfEveryRack) {
  EXPECT_TRUE(racks().fabric.validate().empty());
  EXPECT_EQ(shapes(racks(), 144), (std::vector<Extent>{{72}, {2}}));
  EXPECT_EQ(shapes(racks(), 64), (std::vector<Extent>{{64}}));
  // Divisors of 4 g up to 72 that are multiples of 4: of 128 .. 64, of 96 .. 48, of 100 .. 20, of 4 x 73 only 4.
  EXPECT_EQ(shapes(racks(), 128), (std::vector<Extent>{{64}, {2}}));
  EXPECT_EQ(shapes(racks(), 96), (std::vector<Extent>{{48}, {2}}));
  EXPECT_EQ(shapes(racks(), 100), (std::vector<Extent>{{20}, {5}}));
  EXPECT_EQ(shapes(racks(), 292), (std::vector<Extent>{{4}, {73}}));
  for (std::int64_t gpus = 4; gpus <= 2000; gpus += 4) EXPECT_TRUE(fits(racks(), gpus)) << gpus;
  EXPECT_FALSE(fits(racks(), 74));
}

TEST(FabricTemplate, ADomainOfAnotherSizeMayBeAskedFor) {
  Problems problems;
  EXPECT_EQ(shapes(racks().with_domain(32, problems), 256), (std::vector<Extent>{{32}, {8}}));
  EXPECT_EQ(shapes(dgx().with_domain(4, problems), 16), (std::vector<Extent>{{4}, {4}}));
  EXPECT_TRUE(problems.empty());
  EXPECT_FALSE(fits(racks().with_domain(64, problems), 96));
  for (const std::int64_t bad : {0, 6, 76}) {
    Problems found;
    (void)racks().with_domain(bad, found);
    ASSERT_EQ(found.list().size(), 1U) << bad;
    EXPECT_EQ(found.list()[0].field, "gpus_per_domain");
  }
}

TEST(FabricTemplate, TraysAreForInnermostSwitchesAndDivideThem) {
  const auto broken = [](FabricTemplate cluster) { return cluster.fabric.validate().list().size(); };
  FabricTemplate uneven = racks(), outer = racks(), grid = racks();
  uneven.fabric.dimensions[0].gpus_per_tray = 5;
  std::swap(outer.fabric.dimensions[0].gpus_per_tray, outer.fabric.dimensions[1].gpus_per_tray);
  grid.fabric.dimensions[0].kind = DimensionKind::fully_connected;
  EXPECT_EQ(broken(uneven), 1U);
  EXPECT_EQ(broken(outer), 1U);
  EXPECT_EQ(broken(grid), 1U);
}

}  // namespace
}  // namespace shardscape
