// Do collectives cost what the textbook says, and what their routes force on shared links?
#include "engine/network/prices/collective_prices.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/network/collectives/algorithm_rules.h"

namespace shardscape::network {
namespace {

constexpr double kLinkRate = 1e11;
constexpr double kLinkLatency = 1e-6;
constexpr double kRankStep = 3e-6;
constexpr double kCallTime = 20e-6;
constexpr double kBuffer = 1e8;
constexpr double kMemoryRate = 2e12;  ///< bytes per second of a rank's memory

StackProfile::Communication stack() {
  StackProfile::Communication communication;
  communication.call = Seconds(kCallTime);
  communication.rank_step = Seconds(kRankStep);
  communication.bucket = Bytes(1e6);
  return communication;
}

DimensionSpec fast_dimension(DimensionKind kind, std::vector<std::int64_t> shape,
                             double bandwidth = kLinkRate, LinkScope scope = LinkScope::scale_up) {
  return {"d" + std::to_string(static_cast<int>(kind)) + std::to_string(bandwidth),
          kind,
          std::move(shape),
          BytesPerSecond(bandwidth),
          Seconds(kLinkLatency),
          scope};
}

/// Prices with the objects that they refer to.
struct OneFabric {
  explicit OneFabric(std::vector<DimensionSpec> dimensions,
                     StackProfile::Communication communication_ = stack())
      : communication(communication_), fabric(FabricSpec{"bench", std::move(dimensions)}) {}

  double seconds(CollectiveOp op, const RankGroup& group, double bytes = kBuffer, double calls = 1) {
    return model.time({op, Bytes(bytes), group, calls}).value();
  }

  StackProfile::Communication communication;
  Fabric fabric;
  CollectiveSetup setup{fabric, communication, BytesPerSecond(kMemoryRate)};
  CollectivePrices model{setup};
};

RankGroup group(std::vector<RankGroup::Level> levels) {
  RankGroup result;
  for (const RankGroup::Level& level : levels) result.push(level.extent, level.stride);
  return result;
}

void expect_equal(double actual, double expected) { EXPECT_NEAR(actual, expected, 1e-12 * expected); }

TEST(Collectives, RingAllReduceClosedForm) {
  // Patarasuk and Yuan 2009: 2(n-1) steps of B/n each. On a ring a step is one hop, over a switch two.
  for (const std::int32_t n : {2, 3, 4, 8, 16}) {
    SCOPED_TRACE(n);
    for (const DimensionKind kind : {DimensionKind::ring, DimensionKind::switched}) {
      OneFabric bench({fast_dimension(kind, {n})});
      const double hops = kind == DimensionKind::ring ? 1 : 2;
      const double alpha = kRankStep + hops * kLinkLatency,
                   sweep = (n - 1) * (alpha + kBuffer / (n * kLinkRate));
      const RankGroup all = group({{n, 1}});
      expect_equal(bench.seconds(CollectiveOp::all_reduce, all), kCallTime + 2 * sweep);
      expect_equal(bench.seconds(CollectiveOp::reduce_scatter, all), kCallTime + sweep);
      expect_equal(bench.seconds(CollectiveOp::all_gather, all), kCallTime + sweep);
      expect_equal(bench.seconds(CollectiveOp::ring_pass, all), kCallTime + alpha + kBuffer / kLinkRate);
    }
  }
}

TEST(Collectives, ScaleOutHasALatencyAndAShareOfItsOwn) {
  // 8 nodes on a scale-out switch: 0.8 between two of them, times 0.5 for each of two further doublings. A
  // step of a ring over all ranks crosses it, one inside a node does not.
  StackProfile::Communication communication = stack();
  communication.rank_step_scale_out = Seconds(50e-6);
  communication.scale_out_fraction = 0.8;
  communication.scale_out_scaling = 0.5;
  OneFabric bench({fast_dimension(DimensionKind::switched, {4}),
                   fast_dimension(DimensionKind::switched, {8}, kLinkRate, LinkScope::scale_out)},
                  communication);
  const double inside = kCallTime + 3 * (kRankStep + 2 * kLinkLatency + kBuffer / (4 * kLinkRate));
  expect_equal(bench.seconds(CollectiveOp::all_gather, group({{4, 1}})), inside);
  const double share = 0.8 * 0.5 * 0.5;
  const double across = kCallTime + 7 * (50e-6 + 2 * kLinkLatency + kBuffer / (8 * share * kLinkRate));
  expect_equal(bench.seconds(CollectiveOp::all_gather, group({{8, 4}})), across);
}

// Bytes that one rank of a ring reads and writes, step by step, in chunks of 1/n of the buffer: what comes in
// is written to a buffer and read from it.
double counted_on_a_ring(bool reduces, bool gathers, int n) {
  constexpr int kBuffered = 2, kInput = 1, kOutput = 1;
  int chunks = kInput;  // read for the first step's message
  for (int step = 1; reduces && step < n; ++step) chunks += kBuffered + kInput;
  chunks += kOutput;  // the rank's own share: summed up, or copied
  for (int step = 1; gathers && step < n; ++step) chunks += kBuffered + kOutput;
  return static_cast<double>(chunks) / n;
}

TEST(Collectives, CopiedBytesAreThoseOfTheSteps) {
  for (const std::int32_t n : {2, 3, 4, 8, 64}) {
    SCOPED_TRACE(n);
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct, Algorithm::dimension_wise}) {
      expect_equal(rules_of(algorithm).copied(Operation::all_reduce, n), counted_on_a_ring(true, true, n));
      expect_equal(rules_of(algorithm).copied(Operation::reduce_scatter, n),
                   counted_on_a_ring(true, false, n));
      expect_equal(rules_of(algorithm).copied(Operation::all_gather, n), counted_on_a_ring(false, true, n));
    }
    // Input read, staged, read by the switches; result written by them, read, written to the output.
    expect_equal(rules_of(Algorithm::in_network).copied(Operation::all_reduce, n), 1 + 2 + 2 + 1);
    // Input read, two children's and the parent's halves of both trees (2 in all) in and out, output written.
    const double tree = n == 2 ? 1 + 2 * 1 + 1 : 1 + 2 * 2 + 1;
    expect_equal(rules_of(Algorithm::double_binary_tree).copied(Operation::all_reduce, n), tree);
    EXPECT_EQ(rules_of(Algorithm::direct).copied(Operation::all_to_all, n), 0);
    EXPECT_EQ(rules_of(Algorithm::direct).copied(Operation::point_to_point, n), 0);
  }
}

TEST(Collectives, OwnCopiesAddToTheWire) {
  // Four ranks: 6 - 4/4 = 5 bytes per byte of an all-reduce, 3 - 1/4 of each half; at 1.5 times the time of
  // the memory's peak rate. Passes hide theirs. Half the rate doubles them.
  StackProfile::Communication copying = stack();
  copying.local_copy = 1.5;
  OneFabric plain({fast_dimension(DimensionKind::switched, {4})});
  OneFabric bench({fast_dimension(DimensionKind::switched, {4})}, copying);
  const RankGroup all = group({{4, 1}});
  const double byte = 1.5 * kBuffer / kMemoryRate;
  for (const double share : {1.0, 0.5}) {
    const CollectivePrices slow = bench.model.with_memory(share);
    const auto added = [&](CollectiveOp op, double calls = 1) {
      return slow.time({op, Bytes(kBuffer), all, calls}).value() - plain.seconds(op, all, kBuffer, calls);
    };
    EXPECT_NEAR(added(CollectiveOp::all_reduce), 5 * byte / share, 1e-12);
    EXPECT_NEAR(added(CollectiveOp::all_reduce, 9), 5 * byte / share, 1e-12);
    EXPECT_NEAR(added(CollectiveOp::reduce_scatter), 2.75 * byte / share, 1e-12);
    EXPECT_NEAR(added(CollectiveOp::all_gather), 2.75 * byte / share, 1e-12);
    EXPECT_EQ(added(CollectiveOp::ring_pass), 0);
    EXPECT_EQ(added(CollectiveOp::chain_pass), 0);
    EXPECT_EQ(added(CollectiveOp::all_to_all), 0);
  }
}

TEST(Collectives, CopiesCountInTheChoice) {
  // Eight ranks behind a switch that reduces: the ring moves 1.75 B over each link and copies 5.5 B, the
  // switch moves B and copies 6 B. Latencies left out, the ring is the faster one where 0.75 / bandwidth <
  // local_copy * 0.5 / memory rate, that is from a local_copy of 0.75 * 2e12 / (0.5 * 1e11) = 30 on; at a
  // twentieth of the memory rate from 1.5 on (a little less: the chunks of the switch fill a pipeline).
  StackProfile::Communication communication;
  communication.algorithms = {Algorithm::ring, Algorithm::in_network};
  DimensionSpec d = fast_dimension(DimensionKind::switched, {8});
  d.in_network_reduction = true;
  d.latency = Seconds(0);
  const Fabric fabric(FabricSpec{"switch", {d}});
  const RankGroup all = group({{8, 1}});
  const CollectiveKey asked{CollectiveOp::all_reduce, Bytes(kBuffer), all};
  const auto prices = [&] {
    return CollectivePrices({fabric, communication, BytesPerSecond(kMemoryRate / 20)});
  };
  const auto chosen = [&](double local_copy) {
    communication.local_copy = local_copy;
    return prices().healthy().choice(asked)->algorithm;
  };
  EXPECT_EQ(chosen(0), Algorithm::in_network);
  EXPECT_EQ(chosen(1.3), Algorithm::in_network);
  EXPECT_EQ(chosen(1.6), Algorithm::ring);
  // A rank that gets sick keeps its algorithm: 6 bytes copied per byte, at nine tenths of the memory's rate less.
  communication.local_copy = 1.3;
  const Seconds copies = 1.3 * 6 * Bytes(kBuffer) / BytesPerSecond(kMemoryRate / 20);
  const Seconds slow = prices().with_memory(0.1).time(asked) - prices().time(asked);
  EXPECT_NEAR(slow.value(), 9 * copies.value(), 1e-9 * copies.value());
}

TEST(Collectives, BucketsPayLatencyEachAndBytesOnce) {
  OneFabric bench({fast_dimension(DimensionKind::ring, {4})});
  const RankGroup all = group({{4, 1}});
  const double alpha = 3 * (kRankStep + kLinkLatency), bytes = 3 * kBuffer / (4 * kLinkRate);
  expect_equal(bench.seconds(CollectiveOp::all_gather, all, kBuffer, 7), 7 * (kCallTime + alpha) + bytes);
}

TEST(Collectives, NothingToDoIsFree) {
  OneFabric bench({fast_dimension(DimensionKind::ring, {4})});
  EXPECT_EQ(bench.seconds(CollectiveOp::all_reduce, RankGroup{}), 0);
  EXPECT_EQ(bench.seconds(CollectiveOp::all_reduce, group({{4, 1}}), 0), 0);
}

TEST(Collectives, AchievedFractionFollowsTheScope) {
  StackProfile::Communication communication = stack();
  communication.scale_up_fraction = 0.8;
  communication.scale_out_fraction = 0.5;
  OneFabric bench({fast_dimension(DimensionKind::switched, {4}),
                   fast_dimension(DimensionKind::switched, {4}, kLinkRate / 10, LinkScope::scale_out)},
                  communication);
  const double alpha = kCallTime + 3 * (kRankStep + 2 * kLinkLatency), share = 0.75 * kBuffer;
  expect_equal(bench.seconds(CollectiveOp::all_gather, group({{4, 1}})), alpha + share / (0.8 * kLinkRate));
  expect_equal(bench.seconds(CollectiveOp::all_gather, group({{4, 4}})),
               alpha + share / (0.5 * kLinkRate / 10));
}

TEST(Collectives, DimensionWiseOnATorus) {
  // BlueConnect over 4 x 4: (3/4) B on the first axis, then (3/4)(B/4) on the second. In the flat ring of 16
  // the members 3 -> 4, 7 -> 8, ... take two hops, 3 -> 0 -> 4, and the link 0 -> 4 carries one flow; but the
  // wrap 3 -> 0 is used once, too: no contention, (15/16) B over one link, 15 steps of 2 hops.
  OneFabric bench({fast_dimension(DimensionKind::torus, {4, 4})});
  const RankGroup all = group({{16, 1}});
  const double by_axis = 6 * (kRankStep + kLinkLatency) + (0.75 + 0.75 / 4) * kBuffer / kLinkRate;
  expect_equal(bench.seconds(CollectiveOp::all_gather, all), kCallTime + by_axis);
  // The bytes on the wire are those of the flat ring: 3/4 + 3/16 = 15/16; only latency is saved.
  EXPECT_DOUBLE_EQ(0.75 + 0.75 / 4, 15.0 / 16);
}

TEST(Collectives, DimensionWiseSparesTheSlowDimension) {
  // Nodes of 8 on fast links, 4 nodes on rails at a tenth. The flat ring crosses a rail in every step:
  // (31/32) B at a tenth; by dimension (7/8) B fast and (3/4)(B/8) slow.
  OneFabric bench({fast_dimension(DimensionKind::switched, {8}),
                   fast_dimension(DimensionKind::switched, {4}, kLinkRate / 10)});
  const double fast = 7 * (kRankStep + 2 * kLinkLatency) + 7.0 / 8 * kBuffer / kLinkRate;
  const double slow = 3 * (kRankStep + 2 * kLinkLatency) + 3.0 / 32 * kBuffer / (kLinkRate / 10);
  expect_equal(bench.seconds(CollectiveOp::all_reduce, group({{32, 1}})), kCallTime + 2 * (fast + slow));
}

TEST(Collectives, StrideTwoOnARingOfFour) {
  // Groups {0,2} and {1,3}; exactly half way goes up: 0-1-2, 2-3-0, 1-2-3, 3-0-1. Every + link (0,1) (1,2)
  // (2,3) (3,0) lies on two of the four paths, so each flow has half a link, two hops away.
  OneFabric bench({fast_dimension(DimensionKind::ring, {4})});
  const RankGroup pairs = group({{2, 2}});
  expect_equal(bench.seconds(CollectiveOp::ring_pass, pairs),
               kCallTime + kRankStep + 2 * kLinkLatency + 2 * kBuffer / kLinkRate);
  expect_equal(bench.seconds(CollectiveOp::all_reduce, pairs),
               kCallTime + 2 * (kRankStep + 2 * kLinkLatency + 2 * (kBuffer / 2) / kLinkRate));
}

TEST(Collectives, StrideTwoOnARingOfEight) {
  // Groups {0,2,4,6} and {1,3,5,7}, each to its +2 neighbour: link (i, i+1) is on the path of i and of i - 1,
  // the last member's 6 -> 0 goes on in the same direction. Two flows per + link, none on the others.
  OneFabric bench({fast_dimension(DimensionKind::ring, {8})});
  const RankGroup strided = group({{4, 2}});
  expect_equal(bench.seconds(CollectiveOp::all_gather, strided),
               kCallTime + 3 * (kRankStep + 2 * kLinkLatency + 2 * (kBuffer / 4) / kLinkRate));
  // A contiguous half {0..3}: 3 -> 0 is three hops back over 3-2-1-0, alone on those links. Ranks drift
  // apart: no chunk goes over the long way more than once in three steps, so the latest has seen 1 + 1 + 3
  // hops.
  expect_equal(bench.seconds(CollectiveOp::all_gather, group({{4, 1}})),
               kCallTime + 3 * (kRankStep + (kBuffer / 4) / kLinkRate) + 5 * kLinkLatency);
  // The six steps of an all-reduce go once round, six hops, and over the long way again and one more.
  expect_equal(bench.seconds(CollectiveOp::all_reduce, group({{4, 1}})),
               kCallTime + 6 * (kRankStep + (kBuffer / 4) / kLinkRate) + (6 + 3 + 1) * kLinkLatency);
}

TEST(Collectives, ChainPassGoesBothWaysAndDoesNotClose) {
  // {0..3} on a ring of 8: neighbours only; up and down use different links: one flow each, one hop.
  OneFabric bench({fast_dimension(DimensionKind::ring, {8})});
  expect_equal(bench.seconds(CollectiveOp::chain_pass, group({{4, 1}})),
               kCallTime + kRankStep + kLinkLatency + kBuffer / kLinkRate);
  // Stride 4 on 8: {i, i+4}: i -> i+4 and back, both half way, both in + direction: every + link carries 4.
  expect_equal(bench.seconds(CollectiveOp::chain_pass, group({{2, 4}})),
               kCallTime + kRankStep + 4 * kLinkLatency + 4 * kBuffer / kLinkRate);
}

TEST(Boundaries, EachIsPricedOnTheLinksItCrosses) {
  // Nodes of 4 on a switch of 1e11, two nodes on one of 1e10: stages 0..7, a message both ways. Between 3 and
  // 4 it goes through both switches, two hops each, and so does the one between 7 and 0 that closes the
  // chain.
  StackProfile::Communication far = stack();
  far.rank_step_scale_out = Seconds(50e-6);
  OneFabric bench({fast_dimension(DimensionKind::switched, {4}),
                   fast_dimension(DimensionKind::switched, {2}, kLinkRate / 10, LinkScope::scale_out)},
                  far);
  const double inside = kCallTime + kRankStep + 2 * kLinkLatency + kBuffer / kLinkRate;
  const double across = kCallTime + 50e-6 + 4 * kLinkLatency + 10 * kBuffer / kLinkRate;
  std::vector<double> seconds, back;
  for (const Analysis analysis : {Analysis::by_tiles, Analysis::plain}) {
    bench.setup.analysis = analysis;
    bench.model = CollectivePrices(bench.setup);
    bench.model.boundary_times(Bytes(kBuffer), group({{8, 1}}), false, seconds, back);
    ASSERT_EQ(seconds.size(), 8U);
    for (const std::size_t b : {0U, 1U, 2U, 4U, 5U, 6U}) expect_equal(seconds[b], inside);
    expect_equal(seconds[3], across);
    EXPECT_EQ(seconds[7], 0);
    bench.model.boundary_times(Bytes(kBuffer), group({{8, 1}}), true, seconds, back);
    expect_equal(seconds[7], across);
    // 4 stages of two neighbouring ranks each: every message has links of its own.
    bench.model.boundary_times(Bytes(kBuffer), group({{4, 2}}), true, seconds, back);
    ASSERT_EQ(seconds.size(), 4U);
    expect_equal(seconds[0], inside);
    expect_equal(seconds[1], across);
    expect_equal(seconds[2], inside);
    expect_equal(seconds[3], across);
  }
}

TEST(Boundaries, SiblingsOfOneBoundaryShareItsLinks) {
  // Ring of 8, two stages of 4: i -> i+4 and back, both half way in + direction: every link carries 4.
  OneFabric bench({fast_dimension(DimensionKind::ring, {8})});
  std::vector<double> seconds, back;
  bench.model.boundary_times(Bytes(kBuffer), group({{2, 4}}), true, seconds, back);
  for (const double boundary : seconds)
    expect_equal(boundary, kCallTime + kRankStep + 4 * kLinkLatency + 4 * kBuffer / kLinkRate);
}

TEST(Boundaries, ASickLinkSlowsItsOwn) {
  OneFabric bench({fast_dimension(DimensionKind::ring, {4})});
  const double healthy = kCallTime + kRankStep + kLinkLatency + kBuffer / kLinkRate;
  std::vector<double> seconds, back;
  for (const Analysis analysis : {Analysis::plain, Analysis::by_tiles}) {
    bench.setup.analysis = analysis;
    bench.model = CollectivePrices(bench.setup);
    bench.model.set_faults({{{2, 0.25, Seconds(5e-6)}}});  // link 2: rank 1 -> 2
    bench.model.boundary_times(Bytes(kBuffer), group({{4, 1}}), true, seconds, back);
    for (const std::size_t b : {0U, 2U, 3U}) expect_equal(seconds[b], healthy);
    expect_equal(seconds[1], healthy + 5e-6 + 3 * kBuffer / kLinkRate);
    for (const double no_slower : back) expect_equal(no_slower, healthy);
    bench.model.set_faults({{{3, 0.25, Seconds(0)}}});  // and the one back
    bench.model.boundary_times(Bytes(kBuffer), group({{4, 1}}), true, seconds, back);
    for (const double no_slower : seconds) expect_equal(no_slower, healthy);
    expect_equal(back[1], healthy + 3 * kBuffer / kLinkRate);
  }
  // Cut both ways, a message between 1 and 2 goes the long way over the three others.
  bench.model.set_faults({{{2, 1, Seconds(0), true}, {3, 1, Seconds(0), true}}});
  bench.model.boundary_times(Bytes(kBuffer), group({{4, 1}}), false, seconds, back);
  expect_equal(seconds[1], healthy + 2 * kLinkLatency);
  EXPECT_FALSE(bench.model.unreachable());
}

TEST(Boundaries, RecordedLinksAreThoseOfAllThatAreUsed) {
  OneFabric bench({fast_dimension(DimensionKind::ring, {4})});
  std::vector<double> seconds, back;
  bench.model.boundary_times(Bytes(kBuffer), group({{4, 1}}), false, seconds, back);  // remembered
  LinkRecorder recorder(bench.model);
  bench.model.boundary_times(Bytes(kBuffer), group({{4, 1}}), false, seconds, back);
  for (std::int32_t link = 0; link < 8; ++link)
    EXPECT_EQ(recorder.all().contains(link), link < 6) << link;  // 6, 7: between 3 and 0
}

TEST(Collectives, FaultSlowsOnlyItsUsers) {
  OneFabric bench({fast_dimension(DimensionKind::ring, {4}), fast_dimension(DimensionKind::ring, {4})});
  const RankGroup inner = group({{4, 1}}), outer = group({{4, 4}});
  const double inner_healthy = bench.seconds(CollectiveOp::ring_pass, inner);
  const double outer_healthy = bench.seconds(CollectiveOp::ring_pass, outer);
  bench.model.set_faults({{{0, 0.25, Seconds(5e-6)}}});  // link 0: rank 0 -> 1
  expect_equal(bench.seconds(CollectiveOp::ring_pass, inner), inner_healthy + 5e-6 + 3 * kBuffer / kLinkRate);
  EXPECT_EQ(bench.seconds(CollectiveOp::ring_pass, outer), outer_healthy);
  bench.model.set_faults({{{1, 0.25, Seconds(5e-6)}}});  // rank 1 -> 0: a + ring never goes there
  EXPECT_EQ(bench.seconds(CollectiveOp::ring_pass, inner), inner_healthy);
  bench.model.set_faults({});
  EXPECT_EQ(bench.seconds(CollectiveOp::ring_pass, inner), inner_healthy);
}

TEST(RankGroups, LevelsMergeWhereTheyContinue) {
  EXPECT_EQ(group({{4, 1}, {2, 4}}), group({{8, 1}}));
  EXPECT_NE(group({{4, 1}, {2, 8}}), group({{8, 1}}));
  EXPECT_EQ(group({{1, 1}, {2, 8}, {1, 16}}), group({{2, 8}}));
  EXPECT_EQ(group({{4, 1}, {2, 8}}).size(), 8);
}

TEST(RankGroups, LayoutFollowsTheRankOrder) {
  ParallelPlan plan;
  plan.tensor = 2;
  plan.context = 3;
  plan.data = 5;
  plan.pipeline = 7;
  plan.order = {PlanAxis::pipeline, PlanAxis::tensor, PlanAxis::data, PlanAxis::context};
  const PlanLayout layout(plan);
  EXPECT_EQ(layout.stride(PlanAxis::pipeline), 1);
  EXPECT_EQ(layout.stride(PlanAxis::tensor), 7);
  EXPECT_EQ(layout.stride(PlanAxis::data), 14);
  EXPECT_EQ(layout.stride(PlanAxis::context), 70);
  EXPECT_EQ(layout.group(PlanAxis::context, PlanAxis::data), group({{15, 14}}));
  EXPECT_EQ(layout.group(PlanAxis::context, PlanAxis::tensor), group({{2, 7}, {3, 70}}));
}

TEST(Collectives, AllToAllLeavesByTheAdapterOfItsRail) {
  // 4 nodes of 8 with a rail per GPU at a tenth of the links. Messages change to the rail of their destination
  // inside their own node (PXN): 7/8 of a rank's tensor goes over its link to the switch, and 3/4 of one over
  // each adapter, whichever GPU it comes from. The longest way is up, down, up, down.
  OneFabric bench({fast_dimension(DimensionKind::switched, {8}),
                   fast_dimension(DimensionKind::switched, {4}, kLinkRate / 10, LinkScope::scale_out)});
  const double adapters = 3.0 / 4 * kBuffer / (kLinkRate / 10);
  expect_equal(bench.seconds(CollectiveOp::all_to_all, group({{32, 1}})),
               kCallTime + kRankStep + 4 * kLinkLatency + adapters);
}

}  // namespace
}  // namespace shardscape::network
