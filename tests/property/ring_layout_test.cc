// Rings whose steps are turns of one gate per rank against rings with every step in full: the same events at
// the same times, in memory that grows with the ranks and not with their square.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "tests/support/naive_flow_simulator.h"
#include "tests/support/seeds.h"
#include "tests/support/traffic_fixture.h"

namespace shardscape::network {
namespace {

using test::collective;
using test::dimension;
using test::make_fabric;

/// Not a round one: events that coincide by chance come in an order that rounding decides.
double some_number(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

Fabric some_fabric(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return make_fabric({dimension(DimensionKind::ring, {static_cast<std::int64_t>(3 + random() % 8)})});
    case 1:
      return make_fabric({dimension(DimensionKind::torus, {3, 4})});
    case 2:
      return make_fabric({dimension(DimensionKind::switched, {4}), dimension(DimensionKind::ring, {3})});
    default:
      return test::clique(static_cast<std::int64_t>(3 + random() % 6));
  }
}

/// Three at least: both directions of two ranks share their connections, and which of two messages that are
/// ready at the same instant goes first is for each simulator to say.
std::vector<std::int32_t> some_ranks(std::mt19937_64& random, std::int32_t ranks) {
  std::vector<std::int32_t> group = test::ranks_up_to(ranks);
  std::ranges::shuffle(group, random);
  group.resize(3 + random() % (group.size() - 2));
  return group;
}

Pattern some_ring(std::mt19937_64& random, std::int32_t ranks) {
  constexpr std::array kOperations = {Operation::all_reduce, Operation::reduce_scatter,
                                      Operation::all_gather};
  const bool two_ways = random() % 3 == 0;
  Pattern pattern = collective(kOperations[random() % kOperations.size()],
                               two_ways ? Algorithm::bidirectional_ring : Algorithm::ring,
                               some_ranks(random, ranks), some_number(random, 1e3, 1e6));
  if (random() % 3 == 0) pattern.groups.push_back(some_ranks(random, ranks));
  if (random() % 3 == 0) pattern.start = some_number(random, 0, 5e-5);
  return pattern;
}

/// Rings, and between them sends that let ranks in at different times.
std::vector<Pattern> some_patterns(std::mt19937_64& random, std::int32_t ranks) {
  std::vector<Pattern> patterns;
  const std::size_t count = 1 + random() % 4;
  for (std::size_t p = 0; p < count; ++p) {
    if (random() % 3 == 0) {
      patterns.emplace_back();
      patterns.back().operation = Operation::point_to_point;
      for (std::int32_t send = 0; send < 3; ++send) {
        const auto from = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(ranks));
        patterns.back().sends.push_back(
            {from, (from + 1) % ranks, some_number(random, 1e3, 2e6), some_number(random, 0, 1e-4)});
      }
    } else {
      patterns.push_back(some_ring(random, ranks));
    }
    for (std::size_t earlier = 0; earlier < p; ++earlier) {
      if (random() % 2 == 0) patterns.back().after.push_back(static_cast<std::int32_t>(earlier));
    }
  }
  return patterns;
}

FaultSet some_faults(std::mt19937_64& random, const Fabric& fabric) {
  FaultSet faults;
  for (std::size_t f = 0; f < random() % 3; ++f) {
    LinkFault fault;
    fault.link = static_cast<std::int32_t>(random() % fabric.links().size());
    fault.derate = 0.1 + 0.1 * static_cast<double>(random() % 9);
    faults.links.push_back(fault);
  }
  return faults;
}

TEST(RingLayout, RepeatedStepsTakeTheTimeOfStepsInFull) {
  FlowSimulator simulator;
  std::int64_t messages = 0, kept = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(1500); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Fabric fabric = some_fabric(random);
    FaultyFabric faulty(fabric);
    faulty.set_faults(some_faults(random, fabric));
    const std::vector<Pattern> patterns = some_patterns(random, fabric.ranks());
    ASSERT_TRUE(check_patterns(patterns, faulty).empty());
    const auto full = build_traffic(patterns, faulty, TrafficLayout::in_full);
    const auto repeated = build_traffic(patterns, faulty, TrafficLayout::repeated);
    ASSERT_TRUE(full && repeated);
    ASSERT_EQ(repeated->messages(), full->messages());
    EXPECT_TRUE(closed_gates(repeated->traffic).empty());
    const FlowResult a = simulator.run_traffic(full->traffic, faulty.bytes_per_second());
    const FlowResult b = simulator.run_traffic(repeated->traffic, faulty.bytes_per_second());
    ASSERT_EQ(a.received, full->traffic.sent());
    ASSERT_EQ(b.received, repeated->traffic.sent());
    ASSERT_NEAR(b.completion_time, a.completion_time, 1e-12 * a.completion_time);
    const FlowResult naive = simulate_naively(repeated->traffic, faulty.bytes_per_second());
    ASSERT_EQ(naive.received, b.received);
    ASSERT_NEAR(naive.completion_time, a.completion_time, 1e-9 * a.completion_time);
    messages += full->messages();
    kept += static_cast<std::int64_t>(repeated->traffic.messages.size());
  }
  if (!test::all_seeds()) return;
  EXPECT_GT(messages, 50000);
  EXPECT_LT(kept, messages / 2);
}

// A gate and a message for each rank, whatever the number of steps: with 60 bytes or so for the two, 16,384
// ranks take a megabyte; in full they would take 2 n (n - 1) = 5.4e8 messages.
TEST(RingLayout, MemoryGrowsWithTheRanks) {
  for (const std::int32_t n : {8, 64, 512}) {
    const Fabric fabric = make_fabric({dimension(DimensionKind::ring, {n})});
    FaultyFabric faulty(fabric);
    const auto plan = build_traffic(
        {collective(Operation::all_reduce, Algorithm::ring, test::ranks_up_to(n), 1e6)}, faulty);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->traffic.messages.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(plan->traffic.gates.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(plan->messages(), std::int64_t{2} * n * (n - 1));
  }
}

// A ring whose members wait for each other's gates from outside never turns, and is found.
TEST(RingLayout, ARingThatNobodyStartsIsClosed) {
  const Fabric fabric = make_fabric({dimension(DimensionKind::ring, {3})});
  FaultyFabric faulty(fabric);
  TrafficBuilder builder(faulty, TrafficLayout::repeated);
  const std::int32_t never = builder.add_gate();
  builder.opens(never, never);
  const std::int32_t turning = builder.add_repeating_gate(0, 2, -1);
  builder.opens(never, turning);
  builder.send(turning, builder.connection(0, 1), 1, turning);
  const Traffic traffic = builder.finish().first;
  EXPECT_EQ(closed_gates(traffic), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(FlowSimulator().run_traffic(traffic, faulty.bytes_per_second()).received, 0);
}

}  // namespace
}  // namespace shardscape::network
