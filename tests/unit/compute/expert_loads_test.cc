// Do experts get what a distribution says, and do the ranks that hold them?
#include "engine/compute/expert_loads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace shardscape::compute {
namespace {

ExpertLoad histogram(std::vector<double> entries) {
  ExpertLoad load;
  load.distribution = LoadDistribution::histogram;
  load.histogram = std::move(entries);
  return load;
}

TEST(Popularity, OfHistogramsIsInProportion) {
  EXPECT_EQ(popularity(histogram({1, 2, 3, 2}), 4, 2), (std::vector<double>{0.25, 0.5, 0.75, 0.5}));
  EXPECT_EQ(popularity({}, 4, 2), (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
}

TEST(Popularity, NoTokenChoosesAnExpertTwice) {
  // Of two choices a token spends one on the first expert, which 10 of 12 would go to; 1 : 1 for the other.
  EXPECT_EQ(popularity(histogram({10, 1, 1, 0}), 4, 2), (std::vector<double>{1, 0.5, 0.5, 0}));
  // Of three, 7 and then, of the 2 left, 5 of 8: more than one, too.
  const std::vector<double> shares = popularity(histogram({7, 5, 2, 1}), 4, 3);
  EXPECT_EQ(shares[0], 1);
  EXPECT_EQ(shares[1], 1);
  EXPECT_DOUBLE_EQ(shares[2], 2.0 / 3);
  EXPECT_DOUBLE_EQ(shares[3], 1.0 / 3);
}

TEST(Popularity, OfPowerLawsFollowsTheirDraw) {
  // Exponent 0 is uniform between the ends, exponent 1 uniform in the logarithm.
  for (const double exponent : {0.0, 1.0}) {
    ExpertLoad load;
    load.distribution = LoadDistribution::power_law;
    load.exponent = exponent;
    load.seed = 7;
    const std::vector<double> shares = popularity(load, 64, 1);
    CounterRng random(7, 0);
    std::vector<double> drawn;
    for (int e = 0; e < 64; ++e) {
      const double u = random.uniform(), high = 0.8 * 4096;
      drawn.push_back(exponent == 0 ? 1 + (high - 1) * u : std::exp(u * std::log(high)));
    }
    const double sum = std::accumulate(drawn.begin(), drawn.end(), 0.0);
    for (std::size_t e = 0; e < 64; ++e)
      EXPECT_NEAR(shares[e], drawn[e] / sum, 1e-12) << exponent << ' ' << e;
    load.seed = 8;
    EXPECT_NE(popularity(load, 64, 1), shares);
  }
}

TEST(Popularity, AddsUpToTheChoicesOfAToken) {
  for (const double exponent : {0.0, 0.7, 1.01, 1.2, 2.0, 3.0}) {
    for (const std::int64_t chosen : {1, 4, 8, 16}) {
      ExpertLoad load;
      load.distribution = LoadDistribution::power_law;
      load.exponent = exponent;
      const std::vector<double> shares = popularity(load, 16, chosen);
      EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), static_cast<double>(chosen), 1e-9);
      EXPECT_LE(std::ranges::max(shares), 1);
      EXPECT_GE(std::ranges::min(shares), 0);
    }
  }
}

TEST(Popularity, OfMembersIsThatOfTheirExperts) {
  const std::vector<double> shares = popularity(histogram({1, 2, 3, 2}), 4, 2);
  EXPECT_EQ(member_shares(shares, 2), (std::vector<double>{0.375, 0.625}));
  EXPECT_EQ(member_shares(shares, 1), (std::vector<double>{1}));
}

TEST(ExpectedLoads, CountWhoGetsAnyToken) {
  const std::vector<double> shares = {0.25, 0.5, 0.25, 0};
  // One token: 0.25 + 0.5 + 0.25 experts are active, each with the one token.
  const ExpertLoads one = expected_loads(shares, 1);
  EXPECT_DOUBLE_EQ(one.experts(), 1);
  EXPECT_DOUBLE_EQ(one.tokens(), 1);
  // Two: an expert stays idle with a chance of 0.75^2 or 0.5^2. Two of them are alike: one run.
  const ExpertLoads two = expected_loads(shares, 2);
  ASSERT_EQ(two.runs.size(), 2U);
  EXPECT_DOUBLE_EQ(two.runs[0].experts, 0.75);
  EXPECT_DOUBLE_EQ(two.runs[0].tokens, 1 / 0.75);
  EXPECT_DOUBLE_EQ(two.runs[1].experts, 2 * (1 - 0.75 * 0.75));
  EXPECT_DOUBLE_EQ(two.tokens(), 2);
  // Many: all that can be are active, and get their shares.
  const ExpertLoads many = expected_loads(shares, 1e6);
  EXPECT_DOUBLE_EQ(many.experts(), 3);
  EXPECT_DOUBLE_EQ(many.runs[0].tokens, 5e5);
}

}  // namespace
}  // namespace shardscape::compute
