// A training step goes at the pace of the slowest of its ranks.
#include "engine/step/slowest_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

/// The mean of the largest of n standard normals: x times its density n phi(x) Phi(x)^(n - 1), summed over a fine grid.
double mean_of_largest(double n) {
  constexpr double kStep = 1e-3;
  double sum = 0;
  for (double x = -8; x < 12; x += kStep) {
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    sum += kStep * x * n * density * std::pow(below, n - 1);
  }
  return sum;
}

TEST(SlowestRank, IsTheLargestOfNormals) {
  EXPECT_NEAR(step::expected_largest(1), 0, 1e-12);
  for (const double n : {2.0, 8.0, 64.0, 1000.0, 16384.0, 1e6})
    EXPECT_NEAR(step::expected_largest(n), mean_of_largest(n), 0.03) << n;
}

TEST(SlowestRank, CountsFromANodeOn) {
  EXPECT_EQ(step::slowest_of(0.02, 1), 1);
  EXPECT_EQ(step::slowest_of(0.02, 8), 1);
  EXPECT_EQ(step::slowest_of(0, 10000), 1);
  double before = 1;
  for (std::int64_t ranks = 16; ranks <= 1 << 20; ranks *= 2) {
    const double slowest = step::slowest_of(0.02, ranks);
    EXPECT_GT(slowest, before);
    before = slowest;
  }
  EXPECT_NEAR(step::slowest_of(0.02, 512), 1 + 0.02 * (mean_of_largest(512) - mean_of_largest(8)), 5e-4);
}

// Work of every rank, and nothing else, takes that much longer, in both modes; serving knows nothing of it.
TEST(SlowestRank, StretchesWorkInBothModes) {
  Setting setting;
  setting.model = test::gpt(2, 1024, 8, 32000, 512);
  setting.system.device = test::round_device();
  setting.system.fabric = test::crossbar(64, 1e18, 0);
  setting.system.stack = test::plain_stack();
  setting.workload = test::training(512, 128);
  const auto work = [&](double spread, ExecutionMode mode) {
    setting.system.stack.rank_spread = spread;
    Simulator simulator(setting, {.time_infeasible = true, .mode = mode});
    return simulator.run(test::plan_of(1, 1, 1, 64)).breakdown[TimeClass::compute].value();
  };
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened})
    EXPECT_NEAR(work(0.02, mode) / work(0, mode), step::slowest_of(0.02, 64), 1e-9);
  setting.workload.phase = Phase::inference;
  EXPECT_EQ(step::slowest_rank(setting), 1);
}

}  // namespace
}  // namespace shardscape
