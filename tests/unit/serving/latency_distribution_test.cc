// Does a distribution in bounded memory have the mean and the percentiles of all its values?
#include "engine/serving/latency_distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/counter_rng.h"

namespace shardscape::serving {
namespace {

void expect_like(LatencyDistribution& bounded, std::vector<double> values, double tolerance) {
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  const auto rank = [&](double share) {
    return values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()) - 1e-9)) - 1];
  };
  const Percentiles p = bounded.percentiles();
  EXPECT_EQ(bounded.count(), static_cast<std::int64_t>(values.size()));
  EXPECT_NEAR(p.mean, sum / static_cast<double>(values.size()), 1e-11 * values.back());
  EXPECT_NEAR(p.p50, rank(0.5), tolerance * rank(0.5));
  EXPECT_NEAR(p.p90, rank(0.9), tolerance * rank(0.9));
  EXPECT_NEAR(p.p95, rank(0.95), tolerance * rank(0.95));
  EXPECT_NEAR(p.p99, rank(0.99), tolerance * rank(0.99));
}

TEST(LatencyDistribution, IsExactWhileValuesAreKeptAndCloseBeyond) {
  for (const std::size_t kept : {std::size_t{100'000}, std::size_t{10}}) {
    CounterRng rng(3, 1);
    LatencyDistribution values(kept);
    std::vector<double> all;
    for (int i = 0; i < 20'000; ++i) {
      all.push_back(-std::log1p(-rng.uniform()) * 0.3 + 1e-3);
      values.add(all.back());
    }
    expect_like(values, all, kept > 10 ? 1e-15 : std::exp2(-12));
  }
}

TEST(LatencyDistribution, ProgressionsAreAllTheirValues) {
  for (const std::size_t kept : {std::size_t{100'000}, std::size_t{10}}) {
    CounterRng rng(4, 1);
    LatencyDistribution runs(kept);
    std::vector<double> all;
    for (int i = 0; i < 300; ++i) {
      const Progression p{0.5 + rng.uniform(), (rng.uniform() - 0.4) * 1e-3,
                          static_cast<std::int64_t>(1 + rng.below(400)),
                          static_cast<std::int64_t>(1 + rng.below(5))};
      for (std::int64_t k = 0; k < p.count * p.weight; ++k)
        all.push_back(p.first + p.step * static_cast<double>(k / p.weight));
      runs.add(p);
    }
    expect_like(runs, all, kept > 10 ? 1e-12 : std::exp2(-11));
  }
}

/// Kept as they are, or in buckets as if each had been added by itself.
TEST(LatencyDistribution, WhatComesAgainIsAddedAgain) {
  for (const std::size_t kept : {std::size_t{100'000}, std::size_t{700}}) {
    CounterRng rng(5, 1);
    LatencyDistribution values(kept);
    std::vector<double> all;
    const auto add = [&](std::int64_t times) {
      const double value = 1e-3 + rng.uniform();
      values.add(value, times);
      all.insert(all.end(), static_cast<std::size_t>(times), value);
    };
    for (int i = 0; i < 50; ++i) add(1);
    const LatencyDistribution::Mark mark = values.mark();
    const auto first = static_cast<std::ptrdiff_t>(all.size());
    for (int i = 0; i < 50; ++i) add(static_cast<std::int64_t>(rng.below(3)));
    values.repeat(mark, 20);
    const std::vector<double> period(all.begin() + first, all.end());
    for (int i = 0; i < 20; ++i) all.insert(all.end(), period.begin(), period.end());
    for (int i = 0; i < 50; ++i) add(2);
    expect_like(values, all, kept > 1000 ? 1e-15 : std::exp2(-11));
  }
}

TEST(LatencyDistribution, OfNothingIsZero) {
  LatencyDistribution none;
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.percentiles().p99, 0);
}

}  // namespace
}  // namespace shardscape::serving
