// Is every setting that cannot be, or has no effect, refused at its field, and nothing else?
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/fabrics.h"

namespace shardscape {
namespace {

using K = DimensionKind;
using network::custom_of;
using network::dimension_of;
using network::dragonfly_of;
using network::fat_tree_of;
using network::wire;

Problems problems_of(std::vector<DimensionSpec> dimensions) { return FabricSpec{"f", dimensions}.validate(); }

::testing::AssertionResult refuses(const std::vector<DimensionSpec>& dimensions, const std::string& field,
                                   const std::string& gist) {
  const Problems problems = problems_of(dimensions);
  std::string all;
  for (const Problem& p : problems.list()) {
    all += "\n" + p.field + ": " + p.message;
    if (p.field == field && p.message.find(gist) != std::string::npos) return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "no \"" << gist << "\" at " << field << " among" << all;
}

template <class Change>
std::vector<DimensionSpec> with(DimensionSpec dimension, Change&& change) {
  change(dimension);
  return {std::move(dimension)};
}

TEST(FabricRules, ValidOnesOfEveryKind) {
  for (const DimensionSpec& d :
       {dimension_of("d", K::ring, {5}), dimension_of("d", K::mesh, {3, 4}),
        dimension_of("d", K::torus, {2, 2, 2}), dimension_of("d", K::fully_connected, {4}),
        dimension_of("d", K::switched, {4}), dimension_of("d", K::king_mesh, {3, 3}),
        dimension_of("d", K::hypercube, {8}), fat_tree_of("d", 16, 3, 4), dragonfly_of("d", 3, 2, 2),
        custom_of("d", 2, 0, {wire(0, 1)})}) {
    const Problems problems = problems_of({d});
    EXPECT_TRUE(problems.empty()) << problems.list().front().message;
  }
}

TEST(FabricRules, RatesAreNumbersThatCanBe) {
  for (const double bad :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const auto set = [&](DimensionSpec& d) { d.bandwidth = BytesPerSecond(bad); };
    EXPECT_TRUE(refuses(with(dimension_of("d", K::ring, {4}), set), "dimensions[0].bandwidth",
                        "must be from 1 B/s to 1e+18 B/s"));
    EXPECT_TRUE(refuses(with(custom_of("d", 2, 0, {wire(0, 1)}),
                             [&](DimensionSpec& d) { d.custom.links[0].bandwidth = BytesPerSecond(bad); }),
                        "dimensions[0].links[0].bandwidth", "must be from 1 B/s to 1e+18 B/s"));
    EXPECT_TRUE(refuses(with(fat_tree_of("d", 4, 2, 4),
                             [&](DimensionSpec& d) { d.fat_tree.uplink_bandwidth = BytesPerSecond(bad); }),
                        "dimensions[0].uplink_bandwidth", "must be from 1 B/s to 1e+18 B/s"));
    EXPECT_TRUE(refuses(with(dragonfly_of("d", 2, 2, 2),
                             [&](DimensionSpec& d) { d.dragonfly.global_bandwidth = BytesPerSecond(bad); }),
                        "dimensions[0].global_bandwidth", "must be from 1 B/s to 1e+18 B/s"));
  }
  for (const double bad : {-1e-9, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(
        refuses(with(dimension_of("d", K::ring, {4}), [&](DimensionSpec& d) { d.latency = Seconds(bad); }),
                "dimensions[0].latency", "must be from 1e-15 s to 1e+09 s, or 0"));
  }
}

TEST(FabricRules, Shapes) {
  EXPECT_TRUE(
      refuses({dimension_of("d", K::hypercube, {12})}, "dimensions[0].shape", "power of two, not 12"));
  EXPECT_TRUE(refuses({dimension_of("d", K::ring, {4, 4})}, "dimensions[0].shape", "several extents"));
  EXPECT_TRUE(refuses({dimension_of("d", K::torus, {4, -4})}, "dimensions[0].shape", "from 1 to 2^30"));
  EXPECT_TRUE(refuses({dimension_of("d", K::torus, {})}, "dimensions[0].shape", "at least one extent"));
  EXPECT_TRUE(refuses({dimension_of("d", K::ring, {0}), dimension_of("e", K::ring, {4})},
                      "dimensions[0].shape", "outermost"));
  EXPECT_TRUE(refuses({dimension_of("d", K::ring, {1 << 20}), dimension_of("e", K::ring, {1 << 20})},
                      "dimensions", "2^30"));
  EXPECT_TRUE(refuses({dimension_of("d", K::fully_connected, {100000})}, "dimensions", "2^25 links"));
}

TEST(FabricRules, PerGpuBandwidthNeedsEqualRanks) {
  for (const K kind : {K::mesh, K::king_mesh}) {
    EXPECT_TRUE(refuses(
        with(dimension_of("d", kind, {3, 3}), [](DimensionSpec& d) { d.basis = BandwidthBasis::gpu; }),
        "dimensions[0].bandwidth_per_gpu", "differ in their number of links"));
  }
}

TEST(FabricRules, LeavesKeepTheRatioAndLeaveTheirRestEmpty) {
  // The switches that are sold, at 2:1 and others: the most ports up, and the ratio times as many down, that
  // fit; by brute force over both.
  for (const std::int64_t radix : {8, 24, 32, 36, 40, 48, 64, 65, 128}) {
    for (const double ratio : {1.0, 1.5, 2.0, 3.0, 7.0}) {
      SCOPED_TRACE(testing::Message() << radix << " ports, " << ratio << ":1");
      std::int64_t best_up = 0, best_down = 0;
      for (std::int64_t up = 1; up < radix; ++up) {
        for (std::int64_t down = 1; up + down <= radix; ++down) {
          if (static_cast<double>(down) == ratio * static_cast<double>(up)) best_up = up, best_down = down;
        }
      }
      const DimensionSpec tree = fat_tree_of("d", radix, 2, radix, ratio);
      EXPECT_TRUE(problems_of({tree}).empty());
      EXPECT_EQ(tree.fat_tree.leaf_ports_down(), best_down);
      EXPECT_EQ(tree.fat_tree.leaf_ports_up(), best_up);
    }
  }
}

TEST(FabricRules, FatTrees) {
  EXPECT_TRUE(refuses({fat_tree_of("d", 33, 2, 8)}, "dimensions[0].shape", "more than the 32 that 2 levels"));
  EXPECT_TRUE(refuses({fat_tree_of("d", 4, 3, 8)}, "dimensions[0].levels", "but 1 hold all 4"));
  EXPECT_TRUE(
      refuses({fat_tree_of("d", 16, 2, 8, 1.1)}, "dimensions[0].oversubscription",
              "no whole ports down and up on a radix of 8; the next radix that does is 21; the nearest "
              "on 8 ports is 1, 4 down and 4 up"));
  EXPECT_TRUE(refuses({fat_tree_of("d", 16, 2, 64, 1.333)}, "dimensions[0].oversubscription",
                      "the next radix that does is 2333; the nearest on 64 ports is 1.33333333333, 36 down"));
  EXPECT_TRUE(
      refuses({fat_tree_of("d", 16, 2, 3, 5)}, "dimensions[0].oversubscription", "radix that does is 6"));
  EXPECT_TRUE(
      refuses({fat_tree_of("d", 16, 2, 8, 0.5)}, "dimensions[0].oversubscription", "from 1 to 65536"));
  EXPECT_TRUE(refuses({fat_tree_of("d", 4, 0, 8)}, "dimensions[0].levels", "from 1 to 8"));
  EXPECT_TRUE(refuses({fat_tree_of("d", 4, 2, 1)}, "dimensions[0].radix", "from 2"));
  EXPECT_TRUE(refuses({fat_tree_of("d", 60, 3, 9, 2)}, "dimensions[0].radix", "even"));
  EXPECT_TRUE(refuses({fat_tree_of("d", 4, 1, 8, 3)}, "dimensions[0].oversubscription", "no effect"));
  EXPECT_TRUE(refuses(
      with(fat_tree_of("d", 4, 1, 8), [](DimensionSpec& d) { d.fat_tree.up_routing = UpRouting::ecmp; }),
      "dimensions[0].up_routing", "no effect"));
}

TEST(FabricRules, Dragonflies) {
  EXPECT_TRUE(refuses(with(dragonfly_of("d", 3, 2, 2), [](DimensionSpec& d) { d.shape = {13}; }),
                      "dimensions[0].shape", "is 13"));
  EXPECT_TRUE(refuses(with(dragonfly_of("d", 3, 2, 2), [](DimensionSpec& d) { d.dragonfly.groups = 4; }),
                      "dimensions[0].shape", "is 12, but 4 groups"));
  EXPECT_TRUE(
      refuses(with(dragonfly_of("d", 3, 2, 2), [](DimensionSpec& d) { d.dragonfly.hosts_per_router = 0; }),
              "dimensions[0].hosts_per_router", "from 1 to"));
  EXPECT_TRUE(refuses(
      with(dragonfly_of("d", 1, 2, 2), [](DimensionSpec& d) { d.dragonfly.global_latency = Seconds(0); }),
      "dimensions[0].global_latency", "no effect"));
}

TEST(FabricRules, CustomGraphs) {
  EXPECT_TRUE(refuses({custom_of("d", 3, 1, {wire(0, 3), wire(1, 3), wire(2, 4)})}, "dimensions[0].links[2]",
                      "no vertex 4; they are 0 .. 3"));
  EXPECT_TRUE(refuses({custom_of("d", 2, 0, {wire(0, -1)})}, "dimensions[0].links[0]", "no vertex -1"));
  EXPECT_TRUE(refuses({custom_of("d", 2, 0, {wire(0, 1), wire(1, 1)})}, "dimensions[0].links[1]", "itself"));
  EXPECT_TRUE(
      refuses({custom_of("d", 2, 0, {wire(0, 1), wire(1, 0, true)})}, "dimensions[0].links[1]", "already"));
  EXPECT_TRUE(
      refuses({custom_of("d", 4, 1, {wire(0, 1), wire(2, 3)})}, "dimensions[0].links", "vertex 2, 3, 4"));
  EXPECT_TRUE(
      refuses({custom_of("d", 3, 0, {wire(0, 1), wire(1, 2, true)})}, "dimensions[0].links", "vertex 2"));
  EXPECT_TRUE(refuses({custom_of("d", 5000, 0, {})}, "dimensions[0].shape", "4096"));
  EXPECT_TRUE(refuses({custom_of("d", 0, 0, {})}, "dimensions[0].shape", "not for a custom one"));
}

TEST(FabricRules, AdaptersAndRails) {
  const auto two = [](auto&& change) {
    std::vector<DimensionSpec> dimensions = {dimension_of("node", K::switched, {8}),
                                             fat_tree_of("rail", 4, 1, 8)};
    change(dimensions[1]);
    return dimensions;
  };
  EXPECT_TRUE(problems_of(two([](DimensionSpec& d) { d.nics_per_node = 4; })).empty());
  EXPECT_TRUE(problems_of(two([](DimensionSpec& d) { d.nics_per_node = 16; })).empty());
  EXPECT_TRUE(refuses(two([](DimensionSpec& d) { d.nics_per_node = 3; }), "dimensions[1].nics_per_node",
                      "neither divides the 8 GPUs"));
  EXPECT_TRUE(
      refuses(two([](DimensionSpec& d) { d.nics_per_node = 0; }), "dimensions[1].nics_per_node", "not 0"));
  EXPECT_TRUE(refuses(two([](DimensionSpec& d) { d.rails = 3; }), "dimensions[1].rails", "the 8 adapters"));
  EXPECT_TRUE(refuses(two([](DimensionSpec& d) {
                        d.nics_per_node = 2;
                        d.rails = 4;
                      }),
                      "dimensions[1].rails", "the 2 adapters"));
  EXPECT_TRUE(refuses(two([](DimensionSpec& d) { d.rails = 1; }), "dimensions[1].shape",
                      "32 endpoints are more than the 8"));
  for (const K kind : {K::ring, K::hypercube}) {
    const auto set = [&](auto&& change) { return with(dimension_of("d", kind, {4}), change); };
    EXPECT_TRUE(refuses(set([](DimensionSpec& d) { d.nics_per_node = 1; }), "dimensions[0].nics_per_node",
                        "no effect"));
    EXPECT_TRUE(refuses(set([](DimensionSpec& d) { d.rails = 1; }), "dimensions[0].rails", "no effect"));
    EXPECT_TRUE(refuses(set([](DimensionSpec& d) { d.in_network_reduction = true; }),
                        "dimensions[0].in_network_reduction", "no effect"));
  }
  EXPECT_TRUE(refuses(with(dimension_of("d", K::switched, {4}), [](DimensionSpec& d) { d.rails = 1; }),
                      "dimensions[0].rails", "no effect on a switch"));
}

FabricTemplate open_tree(std::int64_t levels) {
  FabricTemplate cluster;
  cluster.fabric.name = "pod";
  cluster.fabric.dimensions = {dimension_of("node", K::switched, {8}), fat_tree_of("rail", 0, levels, 4)};
  cluster.fabric.dimensions[1].fat_tree.up_routing = UpRouting::ecmp;
  cluster.fabric.dimensions[1].fat_tree.uplink_latency = Seconds(1e-7);
  return cluster;
}

TEST(OpenFatTree, HasTheLevelsThatItsNodesNeed) {
  const FabricTemplate cluster = open_tree(3);
  EXPECT_TRUE(cluster.fabric.validate().empty());
  const auto levels = [&](std::int64_t nodes) {
    Problems problems;
    const FabricSpec fabric = cluster.instantiate(8 * nodes, problems);
    EXPECT_TRUE(problems.empty()) << problems.list().front().message;
    EXPECT_EQ(fabric.size(), 8 * nodes);
    EXPECT_TRUE(fabric.validate().empty());
    return fabric.dimensions.at(1).fat_tree.levels;
  };
  EXPECT_EQ(levels(2), 1);
  EXPECT_EQ(levels(3), 2);
  EXPECT_EQ(levels(8), 2);
  EXPECT_EQ(levels(9), 3);
  EXPECT_EQ(levels(16), 3);
  Problems problems;
  (void)cluster.instantiate(8 * 17, problems);
  ASSERT_EQ(problems.list().size(), 1U);
  EXPECT_EQ(problems.list()[0].field, "gpus");
  EXPECT_NE(problems.list()[0].message.find("17 endpoints are more than the 16"), std::string::npos);
}

TEST(OpenDimensions, OfEveryKindSayWhatDoesNotFit) {
  const auto fits = [](DimensionSpec d, std::int64_t gpus) {
    d.shape = {FabricTemplate::kFill};
    FabricTemplate cluster;
    cluster.fabric.name = "c";
    cluster.fabric.dimensions = {dimension_of("node", K::ring, {2}), d};
    EXPECT_TRUE(cluster.fabric.validate().empty());
    Problems problems;
    (void)cluster.instantiate(gpus, problems);
    return problems.empty();
  };
  EXPECT_TRUE(fits(dimension_of("d", K::hypercube, {1}), 16));
  EXPECT_FALSE(fits(dimension_of("d", K::hypercube, {1}), 12));
  EXPECT_TRUE(fits(dragonfly_of("d", 1, 2, 3), 24));
  EXPECT_TRUE(fits(dragonfly_of("d", 1, 2, 3), 12));
  EXPECT_FALSE(fits(dragonfly_of("d", 1, 2, 3), 20));
  EXPECT_TRUE(fits(dimension_of("d", K::king_mesh, {1}), 14));
  EXPECT_TRUE(fits(dimension_of("d", K::fully_connected, {1}), 14));
}

}  // namespace
}  // namespace shardscape
