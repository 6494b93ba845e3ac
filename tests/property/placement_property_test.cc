// Does the placement search keep its books, and how close does it come to the best of all placements?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "engine/base/counter_rng.h"
#include "engine/network/placement/placement_search.h"
#include "sweep/placement/scotch_placement.h"
#include "tests/support/fabrics.h"

namespace shardscape::network {
namespace {

struct Case {
  std::string name;
  Fabric fabric;
  ParallelPlan plan;
  GroupBytes bytes;
};

DimensionSpec slow(DimensionSpec dimension) {
  dimension.bandwidth = BytesPerSecond(0.25e9);
  return dimension;
}

GroupBytes gigabytes(double tp, double cp, double dp, double pp) {
  return {{{Bytes(tp * 1e9), Bytes(cp * 1e9), Bytes(dp * 1e9), Bytes(pp * 1e9)}}, false};
}

std::vector<Placement> starts_of(const Case& c, const PlacementDemand& demand) {
  std::vector<Placement> starts = regular_placements(c.fabric, c.plan);
  if (auto mapped = placement::scotch_placement(c.fabric, demand)) starts.push_back(std::move(*mapped));
  return starts;
}

std::vector<Case> tiny_cases() {
  using Kind = DimensionKind;
  const auto torus = dimension_of("torus", Kind::torus, {2, 4});
  const auto mesh = dimension_of("mesh", Kind::mesh, {2, 4});
  const auto line = dimension_of("line", Kind::mesh, {7});
  const auto ring = dimension_of("ring", Kind::ring, {4});
  const auto rail = slow(dimension_of("rail", Kind::switched, {2}));
  const auto cube = dimension_of("cube", Kind::hypercube, {8});
  return {
      {"torus", fabric_of({torus}), ordered_plan(2, 1, 2, 2, "pp-dp-cp-tp"), gigabytes(8, 0, 2, 1)},
      {"mesh", fabric_of({mesh}), ordered_plan(4, 1, 2, 1, "dp-tp-cp-pp"), gigabytes(5, 0, 3, 0)},
      {"mesh, one group", fabric_of({mesh}), ordered_plan(8, 1, 1, 1, "tp-cp-dp-pp"), gigabytes(1, 0, 0, 0)},
      {"line of seven", fabric_of({line}), ordered_plan(1, 7, 1, 1, "tp-cp-dp-pp"), gigabytes(0, 1, 0, 0)},
      {"ring and rail", fabric_of({ring, rail}), ordered_plan(2, 2, 2, 1, "dp-cp-tp-pp"),
       gigabytes(4, 2, 1, 0)},
      {"hypercube", fabric_of({cube}), ordered_plan(2, 1, 1, 4, "pp-tp-cp-dp"), gigabytes(3, 0, 0, 3)},
  };
}

TEST(PlacementProperty, CloseToTheBestOfAllPlacements) {
  for (const Case& c : tiny_cases()) {
    SCOPED_TRACE(c.name);
    const PlacementDemand demand = plan_demand(c.plan, c.bytes);
    Placement all(static_cast<std::size_t>(c.fabric.ranks()));
    std::iota(all.begin(), all.end(), 0);
    const PlacementCost plain = placement_cost(c.fabric, demand);
    PlacementCost best = plain;
    do {
      best = std::min(best, placement_cost(c.fabric, demand, all));
    } while (std::ranges::next_permutation(all).found);

    const PlacementResult found = improve_placement(c.fabric, demand, starts_of(c, demand), {20'000, 1, 5});
    EXPECT_EQ(found.plain, plain);
    EXPECT_LE(found.best().cost, found.plain);
    ASSERT_LE(found.candidates.size(), 5U);
    for (std::size_t i = 0; i < found.candidates.size(); ++i) {
      const PlacementCandidate& candidate = found.candidates[i];
      EXPECT_EQ(candidate.cost, placement_cost(c.fabric, demand, candidate.placement));
      if (i > 0) {
        EXPECT_LT(found.candidates[i - 1].cost, candidate.cost);
      }
    }
    // On fabrics as small as these the search should find the optimum.
    EXPECT_DOUBLE_EQ(found.best().cost.congestion_s, best.congestion_s);
    EXPECT_DOUBLE_EQ(found.best().cost.byte_hops, best.byte_hops);
    EXPECT_LE(found.swaps, 20'000);
  }
}

std::vector<Case> larger_cases() {
  using Kind = DimensionKind;
  const auto torus = dimension_of("torus", Kind::torus, {4, 4});
  const auto ring = slow(dimension_of("ring", Kind::ring, {4}));
  const auto node = dimension_of("node", Kind::fully_connected, {4});
  const auto mesh = slow(dimension_of("mesh", Kind::mesh, {3, 3}));
  return {
      {"torus and ring", fabric_of({torus, ring}), ordered_plan(4, 1, 4, 4, "pp-dp-cp-tp"),
       gigabytes(9, 0, 2, 1)},
      {"nodes in a mesh", fabric_of({node, mesh}), ordered_plan(2, 3, 2, 3, "dp-pp-cp-tp"),
       gigabytes(9, 3, 2, 1)},
      {"fat tree", fabric_of({node, slow(fat_tree_of("tree", 8, 2, 4))}),
       ordered_plan(4, 2, 4, 1, "dp-cp-tp-pp"), gigabytes(9, 3, 2, 0)},
  };
}

TEST(PlacementProperty, LoadsAfterSwapsAreThoseCountedFromScratch) {
  const std::uint64_t seed = 20240607;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::uint64_t stream = 0;
  for (const Case& c : larger_cases()) {
    SCOPED_TRACE(c.name);
    const PlacementDemand demand = plan_demand(c.plan, c.bytes);
    CounterRng rng(seed, stream++);
    PlacementLoads loads(c.fabric, demand, {});
    const auto ranks = static_cast<std::uint64_t>(c.fabric.ranks());
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 25; ++i) {
        const auto a = static_cast<std::int32_t>(rng.below(ranks));
        loads.swap(a, static_cast<std::int32_t>(rng.below(ranks)));
      }
      ASSERT_TRUE(is_placement(loads.placement(), c.fabric.ranks()));
      std::vector<std::int32_t> path;
      double smooth = 0;
      for (std::size_t t = 0; t < demand.size(); ++t) {
        std::vector<std::int32_t> flows(c.fabric.links().size(), 0);
        for (const RankFlow& flow : demand[t].flows) {
          path.clear();
          c.fabric.append_route(loads.placement()[static_cast<std::size_t>(flow.source)],
                                loads.placement()[static_cast<std::size_t>(flow.destination)], path);
          for (const std::int32_t link : path) ++flows[static_cast<std::size_t>(link)];
        }
        double fourth = 0;
        for (std::size_t link = 0; link < flows.size(); ++link) {
          ASSERT_EQ(loads.flows(t, static_cast<std::int32_t>(link)), flows[link]);
          fourth += std::pow(flows[link] / c.fabric.links()[link].bandwidth.value(), 4);
        }
        smooth += demand[t].bytes * std::pow(fourth, 0.25);
      }
      const PlacementCost scratch = placement_cost(c.fabric, demand, loads.placement());
      ASSERT_DOUBLE_EQ(loads.cost().byte_hops, scratch.byte_hops);
      ASSERT_NEAR(loads.cost().congestion_s, scratch.congestion_s, 1e-12 * scratch.congestion_s);
      ASSERT_NEAR(loads.smooth(), smooth, 1e-9 * smooth);
    }
  }
}

TEST(PlacementProperty, NeverWorseAndTheSameEveryTime) {
  for (const Case& c : larger_cases()) {
    SCOPED_TRACE(c.name);
    const PlacementDemand demand = plan_demand(c.plan, c.bytes);
    const std::vector<Placement> starts = starts_of(c, demand);
    const PlacementResult first = improve_placement(c.fabric, demand, starts, {10'000, 7});
    const PlacementResult second = improve_placement(c.fabric, demand, starts, {10'000, 7});
    ASSERT_EQ(first.candidates.size(), second.candidates.size());
    for (std::size_t i = 0; i < first.candidates.size(); ++i) {
      EXPECT_EQ(first.candidates[i].placement, second.candidates[i].placement);
      EXPECT_TRUE(is_placement(first.candidates[i].placement, c.fabric.ranks()));
    }
    EXPECT_LE(first.best().cost, first.plain);
    // The first swaps of a search that is cut short can't do harm either.
    EXPECT_LE(improve_placement(c.fabric, demand, starts, {3, 7}).best().cost, first.plain);
  }
}

TEST(ScotchPlacement, IsAPermutationAndAlwaysTheSame) {
  for (const std::vector<Case>& cases : {tiny_cases(), larger_cases()}) {
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      const PlacementDemand demand = plan_demand(c.plan, c.bytes);
      const auto first = placement::scotch_placement(c.fabric, demand);
      ASSERT_TRUE(first.has_value());
      EXPECT_FALSE(first->empty());
      EXPECT_TRUE(is_placement(*first, c.fabric.ranks()));
      EXPECT_EQ(first, placement::scotch_placement(c.fabric, demand));
    }
  }
}

TEST(ScotchPlacement, KeepsHeavyGroupsTogether) {
  // Two nodes of four fully connected GPUs behind a switch; tp = 4 lies across the nodes. Any mapping that
  // cuts no tp ring has the least bytes times hops.
  const Fabric fabric = fabric_of({dimension_of("node", DimensionKind::fully_connected, {4}),
                                   dimension_of("rail", DimensionKind::switched, {2})});
  const ParallelPlan plan = ordered_plan(4, 1, 2, 1, "dp-tp-cp-pp");
  const PlacementDemand demand = plan_demand(plan, gigabytes(100, 0, 1, 0));
  const auto mapped = placement::scotch_placement(fabric, demand);
  ASSERT_TRUE(mapped.has_value());
  EXPECT_LT(placement_cost(fabric, demand, *mapped).byte_hops, placement_cost(fabric, demand).byte_hops);
}

TEST(ScotchPlacement, NothingToMap) {
  const Fabric fabric = fabric_of({dimension_of("ring", DimensionKind::ring, {4})});
  EXPECT_FALSE(placement::scotch_placement(fabric, {}).has_value());
}

}  // namespace
}  // namespace shardscape::network
