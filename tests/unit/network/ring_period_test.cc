// After how long a call along a ring with slow hops follows an equal one: the cycles of who waits for whom against calls
// that are run one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/network/prices/ring_time.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::network {
namespace {

TEST(RingPeriod, CyclesTellWhatRunningCallsGives) {
  // Gaps that differ by next to nothing are run; equal ones are told by the greatest cycle.
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
                 run = ring.period(bytes, step, Gaps{gap * (1 + 1e-9), gap * (1 - 1e-9)});
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
  EXPECT_NEAR(ring.period(1, 0, Gaps{300e-6, 0}), 662e-6, 1e-12);
  // One slow hop alone is never idle either way.
  hops[1].seconds_per_byte = 20e-6;
  const RingTime one(hops, 3);
  EXPECT_NEAR(one.period(1, 0, Gaps{300e-6, 0}), 600e-6, 1e-12);
  EXPECT_NEAR(one.period(1, 0, Gaps{100e-6, 100e-6}), one.period(1, 0, 100e-6), 1e-18);
}

TEST(RingPeriod, LongCyclesAreToldByTheirMean) {
  std::vector<Hop> hops(64, {2e-6, 20e-6});
  hops[1].seconds_per_byte = 200e-6;
  const RingTime ring(hops, 63);
  EXPECT_EQ(ring.period(1, 0, Gaps{400e-6, 200e-6}), ring.period(1, 0, 300e-6));
}

}  // namespace
}  // namespace shardscape::network
