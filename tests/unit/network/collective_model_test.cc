#include "engine/network/collective_model.h"

#include <gtest/gtest.h>

#include "tests/support/fabrics.h"

namespace shardscape::network {
namespace {

using enum CollectiveOp;
using test::dimension;
using test::fabric;

constexpr double kLatency = 1e-6, kBandwidth = 100e9, kBytes = 48e6;

StackProfile::Communication bare() { return test::bare_stack().communication; }

RankGroup group_of(std::int32_t extent, std::int32_t stride) {
  RankGroup group;
  group.push(extent, stride);
  return group;
}

double price(const FabricSpec& spec, CollectiveOp op, const RankGroup& group, double bytes = kBytes,
             const FaultSet& faults = {}) {
  const Fabric f(spec);
  const auto communication = bare();
  CollectiveModel model(f, communication);
  model.set_faults(faults);
  return model.time(op, Bytes(bytes), group).value();
}

FabricSpec one(DimensionKind kind, std::vector<std::int64_t> shape) {
  return fabric({dimension("d", kind, std::move(shape), kBandwidth, kLatency)});
}

// A ring all-reduce takes 2 (n-1) steps; in each every rank sends bytes/n to its successor over a path that
// nobody else uses. On a ring that path is one link, over a switch two (up and down), both of full bandwidth.
TEST(CollectiveClosedForms, RingAllReduce) {
  for (const int n : {2, 4, 7, 8, 16}) {
    const RankGroup all = group_of(n, 1);
    const double bytes_term = 2.0 * (n - 1) * kBytes / (n * kBandwidth);
    const double latency_term = 2.0 * (n - 1) * kLatency;
    EXPECT_NEAR(price(one(DimensionKind::ring, {n}), all_reduce, all), latency_term + bytes_term, 1e-15) << n;
    EXPECT_NEAR(price(one(DimensionKind::fully_connected, {n}), all_reduce, all), latency_term + bytes_term,
                1e-15);
    EXPECT_NEAR(price(one(DimensionKind::switched, {n}), all_reduce, all), 2 * latency_term + bytes_term,
                1e-15);
  }
}

// An open line of n: the closing message n-1 -> 0 runs against the others, on links of its own direction; the
// bytes term is that of the ring, the latency of a step that of the longest path.
TEST(CollectiveClosedForms, RingOnAnOpenLine) {
  EXPECT_NEAR(price(one(DimensionKind::mesh, {5}), all_reduce, group_of(5, 1)),
              8 * (4 * kLatency + kBytes / 5 / kBandwidth), 1e-15);
}

TEST(CollectiveClosedForms, ReduceScatterAndAllGatherAreHalvesOfAllReduce) {
  for (const FabricSpec& spec : test::assorted_fabrics()) {
    const RankGroup all = group_of(static_cast<std::int32_t>(spec.size()), 1);
    const double whole = price(spec, all_reduce, all);
    EXPECT_NEAR(price(spec, reduce_scatter, all), whole / 2, 1e-12 * whole);
    EXPECT_NEAR(price(spec, all_gather, all), whole / 2, 1e-12 * whole);
  }
}

TEST(CollectiveClosedForms, PassesSendOneMessage) {
  const FabricSpec ring = one(DimensionKind::ring, {8});
  EXPECT_NEAR(price(ring, ring_pass, group_of(8, 1)), kLatency + kBytes / kBandwidth, 1e-15);
  // The two directions of a chain use the two directions of the links.
  EXPECT_NEAR(price(ring, chain_pass, group_of(8, 1)), kLatency + kBytes / kBandwidth, 1e-15);
}

// 4 x 4 torus, dimension-wise (BlueConnect): reduce-scatter along x over all 4 rows at once: 3 steps of B/4;
// along y: 3 steps of B/16; gather back the same. Every message has a link of its own.
TEST(CollectiveClosedForms, DimensionWiseAllReduceOnATorus) {
  const double bytes_term = 2 * (3.0 / 4 + 3.0 / 16) * kBytes / kBandwidth;
  EXPECT_NEAR(price(one(DimensionKind::torus, {4, 4}), all_reduce, group_of(16, 1)),
              12 * kLatency + bytes_term, 1e-15);
}

// Islands of 8 on a switch (300 GB/s), 4 of them on rails (25 GB/s): 7/8 B inside, 3/4 of B/8 on the rail.
TEST(CollectiveClosedForms, HierarchicalAllReduceOverNodes) {
  const FabricSpec spec = test::nodes(8, 4);
  const double inside = 7 * 2 * 0.5e-6 + 7.0 / 8 * kBytes / 300e9;
  const double between = 3 * 2 * 2e-6 + 3.0 / 4 * kBytes / 8 / 25e9;
  EXPECT_NEAR(price(spec, all_reduce, group_of(32, 1)), 2 * (inside + between), 1e-15);
}

// Stride-2 groups {0 2 4 6} and {1 3 5 7} on a ring of 8: each message takes two hops; every + link carries
// one message of either group, so its share is half. 3 steps of B/4.
TEST(CollectiveContention, InterleavedGroupsShareTheRing) {
  const double expected = 3 * (2 * kLatency + 2 * kBytes / 4 / kBandwidth);
  EXPECT_NEAR(price(one(DimensionKind::ring, {8}), all_gather, group_of(4, 2)), expected, 1e-15);
}

// Stride-2 groups {0 2} and {1 3} on a ring of 4: exactly half way goes +, so 0->2 uses links 01 12, 2->0
// uses 23 30, 1->3 uses 12 23, 3->1 uses 30 01: every + link carries two. One step of B/2.
TEST(CollectiveContention, PairsHalfWayRound) {
  EXPECT_NEAR(price(one(DimensionKind::ring, {4}), all_gather, group_of(2, 2)),
              2 * kLatency + 2 * (kBytes / 2) / kBandwidth, 1e-15);
}

// Stride-4 pairs on a ring of 8 cross four links each; all eight messages go +: 8 * 4 / 8 = 4 per link.
TEST(CollectiveContention, StrideFour) {
  EXPECT_NEAR(price(one(DimensionKind::ring, {8}), all_gather, group_of(2, 4)),
              4 * kLatency + 4 * (kBytes / 2) / kBandwidth, 1e-15);
}

// Over a crossbar strides cost nothing.
TEST(CollectiveContention, NoneOnASwitch) {
  const FabricSpec spec = one(DimensionKind::switched, {8});
  EXPECT_DOUBLE_EQ(price(spec, all_gather, group_of(4, 2)), price(spec, all_gather, group_of(4, 1)));
}

TEST(CollectiveStack, FixedCostsFractionsAndBuckets) {
  const Fabric f(test::nodes(8, 4));
  auto communication = bare();
  communication.call = Seconds(10e-6);
  communication.rank_step = Seconds(3e-6);
  communication.scale_up_fraction = 0.5;
  communication.scale_out_fraction = 0.8;
  CollectiveModel model(f, communication);
  // Inside a node, 5 calls: each pays the call and 7 steps of (2 links + rank step); the bytes are paid once.
  EXPECT_NEAR(model.time(all_gather, Bytes(kBytes), group_of(8, 1), 5).value(),
              5 * (10e-6 + 7 * (2 * 0.5e-6 + 3e-6)) + 7.0 / 8 * kBytes / (0.5 * 300e9), 1e-15);
  EXPECT_NEAR(model.time(all_gather, Bytes(kBytes), group_of(4, 8)).value(),
              10e-6 + 3 * (2 * 2e-6 + 3e-6) + 3.0 / 4 * kBytes / (0.8 * 25e9), 1e-15);
  EXPECT_EQ(model.time(all_gather, Bytes(kBytes), RankGroup{}).value(), 0);
  EXPECT_EQ(model.time(all_gather, Bytes(0), group_of(8, 1)).value(), 0);
}

// One sick link of a ring of 8 at half speed: the step waits for it.
TEST(CollectiveFaults, TheSickLinkSetsThePace) {
  const FabricSpec spec = one(DimensionKind::ring, {8});
  const FaultSet sick{{{0, 0.5, Seconds(5e-6)}}};  // link 0: 0 -> 1
  EXPECT_NEAR(price(spec, all_gather, group_of(8, 1), kBytes, sick),
              7 * (kLatency + 5e-6 + kBytes / 8 / (0.5 * kBandwidth)), 1e-15);
}

// On a 4 x 4 torus only groups along x meet a sick x link; groups along y do not.
TEST(CollectiveFaults, GroupsThatDoNotUseTheLinkPayNothing) {
  const FabricSpec spec = one(DimensionKind::torus, {4, 4});
  const FaultSet sick{{{0, 0.25, Seconds(0)}}};
  EXPECT_EQ(price(spec, all_reduce, group_of(4, 4), kBytes, sick), price(spec, all_reduce, group_of(4, 4)));
  EXPECT_GT(price(spec, all_reduce, group_of(4, 1), kBytes, sick),
            3 * price(spec, all_reduce, group_of(4, 1)));
}

TEST(CollectiveFaults, HealingRestoresTheHealthyTimes) {
  const Fabric f(one(DimensionKind::torus, {4, 4}));
  const auto communication = bare();
  CollectiveModel model(f, communication);
  const Seconds healthy = model.time(all_reduce, Bytes(kBytes), group_of(16, 1));
  model.set_faults({{{0, 0.1, Seconds(0)}}});
  EXPECT_GT(model.time(all_reduce, Bytes(kBytes), group_of(16, 1)), healthy);
  model.set_faults({});
  EXPECT_EQ(model.time(all_reduce, Bytes(kBytes), group_of(16, 1)), healthy);
}

TEST(RankGroups, MergeContiguousLevels) {
  RankGroup merged;
  merged.push(4, 1);
  merged.push(1, 99);
  merged.push(3, 4);
  EXPECT_EQ(merged, group_of(12, 1));
  EXPECT_EQ(merged.size(), 12);
  merged.push(2, 24);
  EXPECT_EQ(merged.depth, 2);
  EXPECT_EQ(merged.size(), 24);
}

// tp 2, cp 3, dp 4, pp 5 in the order dp-tp-pp-cp: strides 1, 4, 8, 40.
TEST(PlanLayouts, StridesFollowTheRankOrder) {
  ParallelPlan plan;
  plan.tensor = 2, plan.context = 3, plan.data = 4, plan.pipeline = 5;
  plan.order = *parse_rank_order("dp-tp-pp-cp");
  const PlanLayout layout(plan);
  EXPECT_EQ(layout.stride(PlanAxis::data), 1);
  EXPECT_EQ(layout.stride(PlanAxis::tensor), 4);
  EXPECT_EQ(layout.stride(PlanAxis::pipeline), 8);
  EXPECT_EQ(layout.stride(PlanAxis::context), 40);
  EXPECT_EQ(layout.group(PlanAxis::tensor), group_of(2, 4));
  EXPECT_EQ(layout.group(PlanAxis::data, PlanAxis::tensor), group_of(8, 1));
  EXPECT_EQ(layout.group(PlanAxis::data, PlanAxis::context).depth, 2);
}

}  // namespace
}  // namespace shardscape::network
