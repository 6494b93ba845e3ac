// Does every algorithm cost what its textbook formula says, and is the cheapest chosen?
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "engine/network/prices/collective_prices.h"
#include "tests/support/fabrics.h"

namespace shardscape::network {
namespace {

// fabrics.h: links of 1 GB/s and 1 us.
constexpr double kRate = 1e9;
constexpr double kHop = 1e-6;
constexpr double kStep = 3e-6;
constexpr double kCall = 20e-6;
constexpr double kBytes = 4e5;  // below one slice of 512 KiB
constexpr BytesPerSecond kMemory(1e12);

struct Bench {
  Bench(std::vector<DimensionSpec> dimensions, std::vector<Algorithm> algorithms)
      : fabric(fabric_of(std::move(dimensions))) {
    communication.call = Seconds(kCall);
    communication.rank_step = Seconds(kStep);
    communication.bucket = Bytes(1e6);
    communication.algorithms = std::move(algorithms);
  }
  /// Time of an operation of all ranks together, checked against the simulator.
  double seconds(CollectiveOp op, double bytes = kBytes) {
    CollectiveSetup setup = {fabric, communication, kMemory};
    setup.analysis = Analysis::plain;
    const CollectivePrices plain(setup);
    const double time = model.time({op, Bytes(bytes), all()}).value();
    EXPECT_NEAR(plain.time({op, Bytes(bytes), all()}).value(), time, 1e-9 * time);
    return time;
  }
  Algorithm chosen(CollectiveOp op, double bytes) {
    return model.healthy().choice({op, Bytes(bytes), all()})->algorithm;
  }
  [[nodiscard]] RankGroup all() const {
    RankGroup group;
    group.push(fabric.ranks(), 1);
    return group;
  }

  Fabric fabric;
  StackProfile::Communication communication;
  CollectivePrices model{{fabric, communication, kMemory}};
};

DimensionSpec on_switch(std::int64_t n) { return dimension_of("switch", DimensionKind::switched, {n}); }
DimensionSpec on_ring(std::int64_t n) { return dimension_of("ring", DimensionKind::ring, {n}); }

void expect_relative(double actual, double expected) { EXPECT_NEAR(actual, expected, 1e-12 * expected); }

TEST(AlgorithmCost, OnASwitchOfEight) {
  // Every rank sends B (n-1)/n per pass over its one link, two hops away; only the rounds differ.
  constexpr double kPass = 7.0 / 8 * kBytes / kRate, kRound = kStep + 2 * kHop;
  const auto seconds = [](Algorithm algorithm, CollectiveOp op) {
    return Bench({on_switch(8)}, {algorithm}).seconds(op);
  };
  expect_relative(seconds(Algorithm::ring, CollectiveOp::all_reduce), kCall + 2 * (7 * kRound + kPass));
  // Both directions share each link: nothing is won.
  expect_relative(seconds(Algorithm::bidirectional_ring, CollectiveOp::all_reduce),
                  kCall + 2 * (7 * kRound + kPass));
  expect_relative(seconds(Algorithm::direct, CollectiveOp::all_reduce), kCall + 2 * (kRound + kPass));
  expect_relative(seconds(Algorithm::direct, CollectiveOp::all_gather), kCall + kRound + kPass);
  expect_relative(seconds(Algorithm::halving_doubling, CollectiveOp::all_reduce),
                  kCall + 2 * (3 * kRound + kPass));
  expect_relative(seconds(Algorithm::halving_doubling, CollectiveOp::reduce_scatter),
                  kCall + 3 * kRound + kPass);
  expect_relative(seconds(Algorithm::direct, CollectiveOp::all_to_all), kCall + kRound + kPass);
  expect_relative(seconds(Algorithm::pairwise, CollectiveOp::all_to_all), kCall + 7 * kRound + kPass);
  // The root sends seven whole copies over its link.
  expect_relative(seconds(Algorithm::direct, CollectiveOp::broadcast), kCall + kRound + 7 * kBytes / kRate);
  // One slice: seven hops of the whole buffer.
  expect_relative(seconds(Algorithm::ring, CollectiveOp::broadcast),
                  kCall + 7 * kStep + 7 * (2 * kHop + kBytes / kRate));
}

TEST(AlgorithmCost, DoubleBinaryTreeOfTwo) {
  // One tree has rank 0 on top, the other rank 1: half the buffer up, and down again.
  Bench bench({on_switch(2)}, {Algorithm::double_binary_tree});
  expect_relative(bench.seconds(CollectiveOp::all_reduce),
                  kCall + 2 * (kStep + 2 * kHop + kBytes / 2 / kRate));
}

TEST(AlgorithmCost, ReductionInTheSwitch) {
  // NVLS: up once and down once, chunk by chunk. With c chunks the last one is up after B, and down B/c
  // later: 2 hops + (1 + 1/c) B.
  DimensionSpec nvlink = on_switch(8);
  nvlink.in_network_reduction = true;
  Bench bench({nvlink}, {Algorithm::in_network});
  expect_relative(bench.seconds(CollectiveOp::all_reduce), kCall + 2 * (kStep + kHop) + 2 * kBytes / kRate);
  constexpr double kLarge = 1e8;  // 191 slices of 512 KiB: the limit, 32 chunks
  expect_relative(bench.seconds(CollectiveOp::all_reduce, kLarge),
                  kCall + 2 * (kStep + kHop) + 33.0 / 32 * kLarge / kRate);
  EXPECT_EQ(bench.chosen(CollectiveOp::all_reduce, kLarge), Algorithm::in_network);
  // A switch that cannot reduce leaves the ring.
  Bench plain({on_switch(8)}, {Algorithm::in_network});
  EXPECT_EQ(plain.chosen(CollectiveOp::all_reduce, kLarge), Algorithm::ring);
}

TEST(AlgorithmCost, BothDirectionsOfARing) {
  // Each direction has links of its own: half the bytes per step.
  Bench bench({on_ring(8)}, {Algorithm::bidirectional_ring});
  expect_relative(bench.seconds(CollectiveOp::all_reduce), kCall + 14 * (kStep + kHop + kBytes / 16 / kRate));
}

TEST(AlgorithmCost, RingFollowsTheWiresOfATorus) {
  // 4 x 4: in rank order the way from 3 to 4 is two hops; along a Hamiltonian cycle every way is one.
  Bench bench({dimension_of("torus", DimensionKind::torus, {4, 4})}, {Algorithm::ring});
  expect_relative(bench.seconds(CollectiveOp::all_gather), kCall + 15 * (kStep + kHop + kBytes / 16 / kRate));
  const auto choice = bench.model.healthy().choice({CollectiveOp::all_gather, Bytes(kBytes), bench.all()});
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->ring_order, RingOrder::hamiltonian);
  EXPECT_EQ(to_string(*choice), "ring along a Hamiltonian cycle");
}

TEST(AlgorithmCost, RingFollowsTheWiresOfATorusWithoutLatency) {
  // Both orders take the same: the two hops from 3 to 4 are on wires that no other message uses. What no
  // latency does is what the smallest latency does.
  for (const double latency : {0.0, 1e-9}) {
    DimensionSpec torus = dimension_of("torus", DimensionKind::torus, {4, 4});
    torus.latency = Seconds(latency);
    Bench bench({torus}, {Algorithm::ring});
    const auto choice = bench.model.healthy().choice({CollectiveOp::all_gather, Bytes(kBytes), bench.all()});
    ASSERT_TRUE(choice.has_value());
    EXPECT_EQ(choice->ring_order, RingOrder::hamiltonian) << latency;
  }
}

TEST(AlgorithmCost, TheCheapestDependsOnTheSize) {
  // On a ring of 8 the messages of `direct` crowd the wires but need one round per pass; the bidirectional
  // ring needs 14 and sends least.
  Bench bench({on_ring(8)}, StackProfile::Communication::all_algorithms());
  EXPECT_EQ(bench.chosen(CollectiveOp::all_reduce, 100), Algorithm::direct);
  EXPECT_EQ(bench.chosen(CollectiveOp::all_reduce, 1e8), Algorithm::bidirectional_ring);
  EXPECT_FALSE(bench.model.healthy().choice({CollectiveOp::ring_pass, Bytes(1), bench.all()}).has_value());
}

TEST(AlgorithmCost, ASickLinkChangesTheTimeAndNotTheChoice) {
  Bench bench({on_ring(8)}, {Algorithm::ring, Algorithm::bidirectional_ring});
  ASSERT_EQ(bench.chosen(CollectiveOp::all_reduce, 1e8), Algorithm::bidirectional_ring);
  const std::int32_t back = bench.fabric.find_link(1, 0);
  bench.model.set_faults({{{back, 0.01, {}, false}}});
  // The plain ring, which never goes back, would be far cheaper now.
  EXPECT_EQ(bench.chosen(CollectiveOp::all_reduce, 1e8), Algorithm::bidirectional_ring);
  EXPECT_GT(bench.model.time({CollectiveOp::all_reduce, Bytes(1e8), bench.all()}).value(),
            14 * 1e8 / 16 / (0.01 * kRate));
}

TEST(AlgorithmCost, RemovedLinkTakesADetour) {
  // Ring of 4 without 0 -> 1: that message goes 0-3-2-1 on the links of the other direction, alone. Three
  // steps meet the three hops once at most: 3 + 1 + 1.
  Bench bench({on_ring(4)}, {Algorithm::ring});
  bench.model.set_faults({{{bench.fabric.find_link(0, 1), 1, {}, true}}});
  expect_relative(bench.model.time({CollectiveOp::all_gather, Bytes(kBytes), bench.all()}).value(),
                  kCall + 3 * (kStep + kBytes / 4 / kRate) + 5 * kHop);
  EXPECT_FALSE(bench.model.unreachable());
}

TEST(AlgorithmCost, UnreachableIsRememberedUntilTheFaultsChange) {
  Bench bench({on_ring(4)}, {Algorithm::ring});
  const double healthy = bench.seconds(CollectiveOp::all_gather);
  FaultSet faults;
  for (const std::int32_t to : {1, 3}) faults.links.push_back({bench.fabric.find_link(0, to), 1, {}, true});
  bench.model.set_faults(faults);
  EXPECT_FALSE(bench.model.unreachable());
  EXPECT_EQ(bench.model.time({CollectiveOp::all_gather, Bytes(kBytes), bench.all()}), Seconds(0));
  ASSERT_TRUE(bench.model.unreachable());
  EXPECT_EQ(bench.model.describe_unreachable(),
            "no way from 0 to 1: all links that lead on are dead (ring: 0 -> 1, ring: 0 -> 3)");
  bench.model.set_faults({});
  EXPECT_FALSE(bench.model.unreachable());
  EXPECT_EQ(bench.model.time({CollectiveOp::all_gather, Bytes(kBytes), bench.all()}).value(), healthy);
}

}  // namespace
}  // namespace shardscape::network
