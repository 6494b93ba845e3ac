// Percentiles of progressions against those of the same values written out and sorted.
#include "engine/serving/percentile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/base/counter_rng.h"

namespace shardscape::serving {
namespace {

std::vector<double> sorted_values(const std::vector<Progression>& progressions) {
  std::vector<double> values;
  for (const Progression& p : progressions) {
    for (std::int64_t i = 0; i < p.count * p.weight; ++i)
      values.push_back(p.first + p.step * static_cast<double>(i / p.weight));
  }
  std::ranges::sort(values);
  return values;
}

double of_sorted(const std::vector<double>& values, double share) {
  const double rank = std::ceil(share * static_cast<double>(values.size()) - 1e-9);
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

TEST(Percentile, FallingProgressionsHoldTheSameValuesAsRisingOnes) {
  EXPECT_DOUBLE_EQ(percentile({{1, 1, 9, 1}}, 0.5), 5);
  EXPECT_DOUBLE_EQ(percentile({{9, -1, 9, 1}}, 0.5), 5);
  EXPECT_DOUBLE_EQ(percentile({{9, -1, 9, 1}}, 1), 9);
  EXPECT_DOUBLE_EQ(percentile({{9, -1, 9, 1}}, 0.01), 1);
}

TEST(Percentile, AgreesWithTheSortedValues) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CounterRng rng(seed, 0);
    std::vector<Progression> progressions(1 + rng.below(6));
    for (Progression& p : progressions) {
      p.first = 1 + rng.uniform();
      p.count = 1 + static_cast<std::int64_t>(rng.below(40));
      p.weight = 1 + static_cast<std::int64_t>(rng.below(4));
      p.step = rng.below(4) == 0 ? 0 : (rng.uniform() - 0.5) * 0.02;  // stays above 1 - 40 * 0.01
    }
    const std::vector<double> values = sorted_values(progressions);
    for (const double share : {0.05, 0.5, 0.95, 1.0})
      EXPECT_NEAR(percentile(progressions, share), of_sorted(values, share), 1e-12)
          << "seed " << seed << ", share " << share;
  }
}

TEST(Percentile, ManyProgressionsOfUnevenWeight) {
  // A few hold most of the values, as long runs of large batches do among the gaps of single requests.
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CounterRng rng(seed, 1);
    std::vector<Progression> progressions(1 + rng.below(400));
    for (Progression& p : progressions) {
      const bool heavy = rng.below(10) == 0;
      p.first = rng.below(5) == 0 ? 1.5 : 1 + 9 * rng.uniform();
      p.count = heavy ? 1 + static_cast<std::int64_t>(rng.below(60)) : 1;
      p.weight = heavy ? 1 + static_cast<std::int64_t>(rng.below(30)) : 1;
      p.step = heavy && rng.below(3) > 0 ? 1e-3 * rng.uniform() : 0;
    }
    const std::vector<double> values = sorted_values(progressions);
    for (const double share : {0.001, 0.05, 0.5, 0.7, 0.95, 0.999, 1.0})
      EXPECT_NEAR(percentile(progressions, share), of_sorted(values, share), 1e-12)
          << "seed " << seed << ", share " << share;
  }
}

/// Of so many that a sample says where to look, also where it says so wrongly.
TEST(Percentile, SeveralOfManyAreTheSortedValues) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CounterRng rng(seed, 2);
    std::vector<Progression> progressions(400 + rng.below(3000));
    const bool sorted = rng.below(3) == 0, coarse = rng.below(3) == 0, single = rng.below(3) == 0;
    for (Progression& p : progressions) {
      p.first = coarse ? static_cast<double>(1 + rng.below(4)) : 1 + 9 * rng.uniform() * rng.uniform();
      p.count = 1 + static_cast<std::int64_t>(single ? 0 : rng.below(1 + rng.below(20)));
      p.weight = 1 + static_cast<std::int64_t>(rng.below(1 + rng.below(5)));
      p.step = rng.below(3) == 0 ? 0 : (rng.uniform() - 0.3) * 1e-2;
    }
    if (sorted) std::ranges::sort(progressions, {}, &Progression::first);
    const std::vector<double> values = sorted_values(progressions);
    const std::vector<double> shares = {0.001, 0.5, 0.9, 0.95, 0.99, 1.0};
    std::vector<double> found(shares.size());
    percentiles(progressions, shares, found);
    for (std::size_t i = 0; i < shares.size(); ++i)
      EXPECT_NEAR(found[i], of_sorted(values, shares[i]), 1e-12)
          << "seed " << seed << ", share " << shares[i];
  }
}

}  // namespace
}  // namespace shardscape::serving
