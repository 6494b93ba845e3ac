// What do groups span, what does a placement cost, and does the search find what there is to gain?
#include "engine/network/placement/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/network/placement/placement_search.h"
#include "engine/network/prices/collective_prices.h"
#include "tests/support/fabrics.h"

namespace shardscape::network {
namespace {

Placement identity(std::int32_t ranks) {
  Placement placement(static_cast<std::size_t>(ranks));
  std::iota(placement.begin(), placement.end(), 0);
  return placement;
}

TEST(RingSuccessor, WalksEveryMemberOnceAndComesBack) {
  // dp outside cp with pp between: members 0, 2, 8, 10 (strides 2 and 8).
  const RankGroup group =
      PlanLayout(ordered_plan(2, 2, 2, 2, "tp-cp-pp-dp")).group(PlanAxis::data, PlanAxis::context);
  EXPECT_EQ(ring_successor(group, 1), 3);
  EXPECT_EQ(ring_successor(group, 3), 9);
  EXPECT_EQ(ring_successor(group, 9), 11);
  EXPECT_EQ(ring_successor(group, 11), 1);
}

TEST(AxisSpans, NamesDimensionsHopsAndContention) {
  const Fabric fabric = fabric_of(
      {dimension_of("board", DimensionKind::ring, {4}), dimension_of("rack", DimensionKind::switched, {4})});
  const std::vector<AxisSpan> spans = axis_spans(fabric, ordered_plan(2, 1, 4, 2, "tp-pp-dp-cp"));
  ASSERT_EQ(spans.size(), 5U);
  // tp: 0 <-> 1, 2 <-> 3 on each board, both ways over one link each.
  EXPECT_EQ(spans[0].dimensions, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(spans[0].hops, 1);
  EXPECT_EQ(spans[0].contention, 1);
  // The plan has no cp.
  EXPECT_EQ(spans[1].degree, 1);
  EXPECT_EQ(spans[1].contention, 0);
  EXPECT_TRUE(spans[1].dimensions.empty());
  // dp: up to the rack's switch and down.
  EXPECT_EQ(spans[2].degree, 4);
  EXPECT_EQ(spans[2].stride, 4);
  EXPECT_EQ(spans[2].dimensions, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(spans[2].hops, 2);
  EXPECT_DOUBLE_EQ(spans[2].mean_hops, 2);
  EXPECT_EQ(spans[2].contention, 1);
  // pp: 0 <-> 2 and 1 <-> 3; half way round a ring of four goes in the + direction, so that all four flows
  // of a board take two + links each: 8 link uses over 4 links.
  EXPECT_EQ(spans[3].stride, 2);
  EXPECT_EQ(spans[3].hops, 2);
  EXPECT_EQ(spans[3].contention, 2);
}

TEST(AxisSpans, DataAndContextTogetherCrossWhatBothCross) {
  const Fabric fabric =
      fabric_of({dimension_of("a", DimensionKind::ring, {4}), dimension_of("b", DimensionKind::ring, {4})});
  const std::vector<AxisSpan> spans = axis_spans(fabric, ordered_plan(1, 4, 4, 1));
  EXPECT_EQ(spans[1].dimensions, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(spans[2].dimensions, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(spans[4].degree, 16);
  EXPECT_EQ(spans[4].dimensions, (std::vector<std::int32_t>{0, 1}));
}

TEST(AxisSpans, FollowThePlacement) {
  // Even logical ranks on the first half of the ring, odd ones on the second: tp pairs are half way apart.
  const Fabric fabric = fabric_of({dimension_of("ring", DimensionKind::ring, {4})});
  const Placement placement = {0, 2, 1, 3};
  EXPECT_EQ(axis_spans(fabric, ordered_plan(2, 1, 2, 1))[0].hops, 1);
  EXPECT_EQ(axis_spans(fabric, ordered_plan(2, 1, 2, 1), placement)[0].hops, 2);
}

TEST(PlacementCost, AddsTheWorstLinkOfEachAxis) {
  // Ring of four at 1 GB/s. tp = 2: neighbours, one flow per link, 3 GB: 3 s; 4 flows of one hop.
  // dp = 2: half way, two + links per flow, two flows on each + link, 1 GB: 2 s; 4 flows of two hops.
  const Fabric fabric = fabric_of({dimension_of("ring", DimensionKind::ring, {4})});
  const GroupBytes bytes{{{Bytes(3e9), Bytes(7e9), Bytes(1e9), Bytes(7e9)}}, false};
  const PlacementCost cost = placement_cost(fabric, plan_demand(ordered_plan(2, 1, 2, 1), bytes));
  EXPECT_DOUBLE_EQ(cost.congestion_s, 5);
  EXPECT_DOUBLE_EQ(cost.byte_hops, 4 * 3e9 + 8 * 1e9);
}

TEST(PlanDemand, PipelinesAreChainsUnlessTheyWrap) {
  GroupBytes bytes;
  bytes[ParallelGroup::pipeline] = Bytes(1);
  const PlacementDemand chain = plan_demand(ordered_plan(1, 1, 2, 4), bytes);
  ASSERT_EQ(chain.size(), 1U);
  EXPECT_EQ(chain[0].flows.size(), 2U * 3 * 2);  // two replicas, three boundaries, two ways
  bytes.pipeline_wraps = true;
  EXPECT_EQ(plan_demand(ordered_plan(1, 1, 2, 4), bytes)[0].flows.size(), 2U * 4 * 2);
  EXPECT_EQ(plan_demand(ordered_plan(1, 1, 4, 2), bytes)[0].flows.size(), 4U * 1 * 2);  // neighbours already
}

TEST(RegularPlacements, ArePermutationsAndDistinct) {
  const Fabric fabric = fabric_of({dimension_of("torus", DimensionKind::torus, {4, 2}),
                                   dimension_of("rail", DimensionKind::switched, {3})});
  std::vector<Placement> placements = regular_placements(fabric, ordered_plan(2, 1, 4, 3));
  ASSERT_GT(placements.size(), 3U);
  for (const Placement& placement : placements) {
    EXPECT_TRUE(is_placement(placement, 24));
    EXPECT_NE(placement, identity(24));
  }
  std::ranges::sort(placements);
  EXPECT_EQ(std::ranges::adjacent_find(placements), placements.end());
}

TEST(IsPlacement, RejectsWhatIsNoPermutation) {
  EXPECT_TRUE(is_placement({}, 3));
  EXPECT_TRUE(is_placement(std::vector<std::int32_t>{2, 0, 1}, 3));
  EXPECT_FALSE(is_placement(std::vector<std::int32_t>{0, 0, 1}, 3));
  EXPECT_FALSE(is_placement(std::vector<std::int32_t>{0, 1, 3}, 3));
  EXPECT_FALSE(is_placement(std::vector<std::int32_t>{0, -1, 1}, 3));
  EXPECT_FALSE(is_placement(std::vector<std::int32_t>{0, 1}, 3));
}

TEST(ImprovePlacement, FoldsRowMajorTensorGroupsOnATorusIntoBlocks) {
  // tp = 8 on a 4x4 torus, row-major: each group is two rows. Its ring steps along a row 3 times, then from
  // (3, y) to (0, y + 1): by dimension order 1 link round the row in +, then 1 in the column. So a row's
  // wrap link carries one flow and each row's last-to-next step crosses 2 links; back from the last member
  // (3, y + 1) to the first likewise. Column links + and - carry one flow each, at x = 0: the load is 1
  // everywhere and only byte-hops can gain: 8 steps of a group cross 6 + 2 * 2 = 10 links. A closed walk
  // through a 4x2 block crosses 8, the least there is: one link per step.
  const Fabric fabric = fabric_of({dimension_of("torus", DimensionKind::torus, {4, 4})});
  GroupBytes bytes;
  bytes[ParallelGroup::tensor] = Bytes(1e9);
  const ParallelPlan plan = ordered_plan(8, 1, 2, 1);
  const PlacementDemand demand = plan_demand(plan, bytes);
  const PlacementResult result = improve_placement(fabric, demand, regular_placements(fabric, plan));
  EXPECT_DOUBLE_EQ(result.plain.byte_hops, 2 * 10 * 1e9);
  EXPECT_DOUBLE_EQ(result.best().cost.byte_hops, 2 * 8 * 1e9);
  EXPECT_DOUBLE_EQ(result.best().cost.congestion_s, 1);
}

TEST(ImprovePlacement, MovesTensorGroupsOffTheSlowDimension) {
  // Fast ring of 4 (4 GB/s) inside, slow ring of 4 (1 GB/s) outside; tp outermost sends 8 GB per rank over
  // slow links: 8 s. Exchanging the dimensions leaves tp 2 s.
  DimensionSpec fast = dimension_of("fast", DimensionKind::ring, {4});
  fast.bandwidth = BytesPerSecond(4e9);
  const Fabric fabric = fabric_of({fast, dimension_of("slow", DimensionKind::ring, {4})});
  GroupBytes bytes;
  bytes[ParallelGroup::tensor] = Bytes(8e9);
  const PlacementDemand demand = plan_demand(ordered_plan(4, 1, 4, 1, "dp-pp-cp-tp"), bytes);
  const PlacementResult result = improve_placement(fabric, demand, {});
  EXPECT_DOUBLE_EQ(result.plain.congestion_s, 8);
  EXPECT_DOUBLE_EQ(result.best().cost.congestion_s, 2);
}

TEST(ImprovePlacement, NothingToSendNothingToMove) {
  const Fabric fabric = fabric_of({dimension_of("ring", DimensionKind::ring, {4})});
  const PlacementResult result = improve_placement(fabric, {}, {});
  EXPECT_EQ(result.best().placement, identity(4));
  EXPECT_EQ(result.swaps, 0);
}

TEST(CollectivePlacement, PricesWhereTheRanksReallyAre) {
  // Ring of four at 1 GB/s, all fixed costs zero. tp = 2 pairs are neighbours: one flow per link; placed half
  // way apart, two flows share each + link, so a pass takes twice as long.
  DimensionSpec ring = dimension_of("ring", DimensionKind::ring, {4});
  ring.latency = Seconds(0);
  const Fabric fabric = fabric_of({ring});
  const StackProfile::Communication communication;
  const RankGroup group = PlanLayout(ordered_plan(2, 1, 2, 1)).group(PlanAxis::tensor);
  CollectiveSetup setup{fabric, communication, BytesPerSecond(1e12)};
  const auto pass = [&](std::vector<std::int32_t> placement) {
    setup.placement = std::move(placement);
    return CollectivePrices(setup).time({CollectiveOp::ring_pass, Bytes(1e9), group}).value();
  };
  EXPECT_DOUBLE_EQ(pass({0, 2, 1, 3}), 2);
  EXPECT_DOUBLE_EQ(pass({3, 2, 1, 0}), 1);  // a reflection
  EXPECT_DOUBLE_EQ(pass({}), 1);
}

}  // namespace
}  // namespace shardscape::network
