// After how long a call along a ring with slow hops follows an equal one: the cycles of who waits for whom against
// calls that are run one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/network/prices/ring_time.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::network {
namespace {

std::vector<RowStage> stage_of(const RingTime& ring, double bytes, double step, int steps) {
  const std::vector<HopTime> hops = ring.hop_times(bytes, step);
  return {{0, hops.size(), static_cast<std::size_t>(steps), {}, hops}};
}

TEST(RingPeriod, CyclesTellWhatRunningCallsGives) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    test::ScenarioGenerator random(seed);
    const int n = random.pick({2, 3, 4, 5, 8});
    const int steps = random.coin() ? n - 1 : 2 * (n - 1);
    std::vector<Hop> hops(static_cast<std::size_t>(n), {random.between(0, 2e-6), 1e-10});
    const int slow = random.pick({1, 1, 2});
    const std::size_t at = random.below(hops.size());
    const double rate = 1e-10 * random.between(1, 20);
    for (int i = 0; i < slow; ++i)
      hops[(at + static_cast<std::size_t>(i)) % hops.size()].seconds_per_byte = rate;
    const RingTime ring(hops, steps);
    const double bytes = random.between(1e4, 1e7), step = random.between(0, 2e-6),
                 gap = ring.at(bytes) * random.between(0, 2);
    const double told = ring.period(bytes, step, gap),
                 run = mean_in_row(stage_of(ring, bytes, step, steps), {gap, gap});
    EXPECT_NEAR(run / told, 1, 1e-5) << "seed " << seed << ", " << n << " members, " << steps << " steps";
  }
}

TEST(RingPeriod, UnequalGapsWaitMoreThanTheirMeanSays) {
  // Two neighbouring hops at a tenth of the rate, w = 20 and 200 us, S = 3. With 150 us before each call the slow hops
  // are never idle, S s = 600. With 300 us before every other call and nothing before the rest, the greatest cycle goes
  // once round the ring in four calls: four latencies, the two fast hops once each, the other ten of twelve messages at
  // slow hops, and both long gaps, so that a call takes (4 x 2 + 2 x 20 + 10 x 200 + 2 x 300) / 4 = 662 us.
  std::vector<Hop> hops(4, {2e-6, 20e-6});
  hops[1].seconds_per_byte = hops[2].seconds_per_byte = 200e-6;
  const RingTime ring(hops, 3);
  EXPECT_NEAR(ring.period(1, 0, 150e-6), 600e-6, 1e-12);
  EXPECT_NEAR(mean_in_row(stage_of(ring, 1, 0, 3), {300e-6, 0}), 662e-6, 1e-12);
  // One slow hop alone is never idle either way.
  hops[1].seconds_per_byte = 20e-6;
  const RingTime one(hops, 3);
  EXPECT_NEAR(mean_in_row(stage_of(one, 1, 0, 3), {300e-6, 0}), 600e-6, 1e-12);
  EXPECT_NEAR(mean_in_row(stage_of(one, 1, 0, 3), {100e-6, 100e-6}), one.period(1, 0, 100e-6), 1e-15);
}

// Members that have waited for each other before a call take as long as a call by itself takes.
TEST(RingPeriod, MembersThatBeginTogetherSaveNothing) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    test::ScenarioGenerator random(seed);
    std::vector<Hop> hops(random.pick<std::size_t>({2, 3, 4, 8}), {random.between(0, 2e-6), 1e-10});
    hops[random.below(hops.size())].seconds_per_byte = 1e-9;
    const int steps = static_cast<int>(hops.size()) - 1;
    const RingTime ring(hops, steps);
    const double bytes = random.between(1e4, 1e7), gap = ring.at(bytes) * random.between(0, 2),
                 alone = ring.at(bytes);
    const std::vector<RowStage> stage = stage_of(ring, bytes, 0, steps);
    EXPECT_NEAR(mean_in_row(stage, {{gap, true}}), gap + alone, 1e-9 * (gap + alone)) << seed;
    // If only the first of two begins so, it takes no longer than if both do, and no less than if none does.
    const double first = mean_in_row(stage, {{gap, true}, {gap, false}});
    EXPECT_LE(first, (gap + alone) * (1 + 1e-9)) << seed;
    EXPECT_GE(first, mean_in_row(stage, {gap}) * (1 - 1e-9)) << seed;
  }
}

// Reduce-scatter over two nodes of eight, one receiver of 16 with a rail at a quarter of the rate: 4.3 us a message and
// 11 us to its receipt in a node, 39 and 13 between them, 15 us between calls; 174.1 us healthy. In one call the late
// member's node waits for it, in the next the other node does. A late member sends its messages one after the other at
// once, as what it passes on has been there for long, and so catches up on their latency: of 117 us added to every
// other call 51 are left. 199.6 us is what executing such calls gave, rank by rank.
TEST(RingPeriod, ALateMemberCatchesUpOnLatency) {
  const HopTime rail{39e-6, 13e-6};
  std::vector<RowStage> stages = {{0, 8, 7, {4.3e-6, 11e-6}, {}}, {1, 2, 1, rail, {}}};
  EXPECT_NEAR(mean_in_row(stages, {15e-6}), 174.1e-6, 1e-9);
  stages[1].slow = {rail, {4 * 39e-6, 13e-6}};
  EXPECT_NEAR(mean_in_row(stages, {15e-6}), 199.6e-6, 1e-9);
  stages[1].slow = {rail, {10 * 39e-6, 13e-6}};  // never idle
  EXPECT_NEAR(mean_in_row(stages, {15e-6}), 390e-6, 1e-9);
}

}  // namespace
}  // namespace shardscape::network
