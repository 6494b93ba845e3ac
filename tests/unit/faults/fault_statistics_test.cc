// Are the summaries those of textbook formulas, computed by hand?
#include "sweep/faults/fault_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shardscape::sweep {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(FaultStatistics, SmallSampleByHand) {
  const std::vector<SampleOutcome> samples = {
      {0, 4, -1}, {0.1, 7, -1}, {0.02, 2, -1}, {kNaN, 1, -1}, {0.1, 9, -1}};
  const results::FaultSummary s = summarise(samples);
  EXPECT_EQ(s.samples, 5);
  EXPECT_EQ(s.unreachable, 1);
  EXPECT_NEAR(s.mean, 0.055, 1e-15);
  // Squares about the mean: 0.055^2 + 2 * 0.045^2 + 0.035^2 = 0.0083; / 3 / 4, square root.
  EXPECT_NEAR(s.standard_error, std::sqrt(0.0083 / 12), 1e-15);
  EXPECT_EQ(s.p50, 0.02);  // the second of four
  EXPECT_EQ(s.p95, 0.1);
  EXPECT_EQ(s.max, 0.1);
  EXPECT_EQ(s.above_1pct, 0.75);
  EXPECT_EQ(s.worst_link, 7);  // the first of equals
  EXPECT_EQ(s.worst_device, -1);
}

TEST(FaultStatistics, NearestRanksOfAHundred) {
  std::vector<SampleOutcome> samples;
  for (int i = 100; i >= 1; --i) samples.push_back({0.001 * i, -1, i});
  const results::FaultSummary s = summarise(samples);
  EXPECT_DOUBLE_EQ(s.p50, 0.050);
  EXPECT_DOUBLE_EQ(s.p95, 0.095);
  EXPECT_DOUBLE_EQ(s.p99, 0.099);
  EXPECT_EQ(s.worst_device, 100);
}

TEST(FaultStatistics, NothingIsLeftWhereAllAreCut) {
  const std::vector<SampleOutcome> samples = {{kNaN, 4, -1}, {kNaN, 7, -1}};
  const results::FaultSummary s = summarise(samples);
  EXPECT_EQ(s.unreachable, 2);
  EXPECT_TRUE(std::isnan(s.mean));
  EXPECT_EQ(s.worst_link, -1);
}

TEST(FaultStatistics, NothingSlowsMeansNoWorstLink) {
  const std::vector<SampleOutcome> samples = {{0, 4, -1}, {0, 7, -1}};
  EXPECT_EQ(summarise(samples).worst_link, -1);
  EXPECT_EQ(summarise(samples).standard_error, 0);
}

TEST(StoppingRule, StopsWhereTheIntervalIsNarrowEnough) {
  // Alternating 0 and d: variance d^2/4 n/(n-1), so the width is 2 * 1.96 * d/2 / sqrt(n-1) for even n.
  // With d = 0.1 it reaches 0.02 at n - 1 >= (1.96 * 0.1 / 0.02)^2 = 96.04: n = 98.
  StoppingRule rule(0.02);
  int n = 0;
  while (!rule.add(n % 2 == 0 ? 0.0 : 0.1)) ++n;
  EXPECT_NEAR(n + 1, 98, 1);
}

TEST(StoppingRule, NeverBeforeThirtyAndNeverWithoutATarget) {
  StoppingRule rule(0.5), endless(std::nullopt);
  for (int i = 1; i < kLeastSamplesOfTarget; ++i) EXPECT_FALSE(rule.add(0));
  EXPECT_FALSE(rule.add(kNaN));
  EXPECT_TRUE(rule.add(0));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(endless.add(0));
}

}  // namespace
}  // namespace shardscape::sweep
