#include "sweep/validate/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardscape::validate {
namespace {

std::vector<Pair> pairs(const std::vector<double>& measured, const std::vector<double>& predicted) {
  std::vector<Pair> result;
  for (std::size_t i = 0; i < measured.size(); ++i) result.push_back({i, measured[i], predicted[i]});
  return result;
}

TEST(Quantile, InterpolatesBetweenNeighbours) {
  const std::vector<double> values = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 3.7);  // position 0.9 x 3 = 2.7
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
  const std::vector<double> one = {7};
  EXPECT_DOUBLE_EQ(quantile(one, 0.9), 7);
}

// Errors -10 %, +20 %, 0: absolute and sorted 0, 0.1, 0.2; p90 lies at position 1.8, 0.1 + 0.8 x 0.1.
TEST(ErrorStatistics, OfThreeRows) {
  const ErrorStatistics errors = error_statistics(pairs({10, 10, 10}, {9, 12, 10}));
  EXPECT_EQ(errors.n, 3U);
  EXPECT_NEAR(errors.mean, 0.1, 1e-12);
  EXPECT_NEAR(errors.median, 0.1, 1e-12);
  EXPECT_NEAR(errors.p90, 0.18, 1e-12);
  EXPECT_NEAR(errors.max, 0.2, 1e-12);
  EXPECT_NEAR(errors.bias, 0.1 / 3, 1e-12);
  EXPECT_EQ(error_statistics({}).n, 0U);
}

TEST(OomStatistics, CountsAndShares) {
  OomStatistics oom;
  EXPECT_FALSE(oom.accuracy());
  const auto add = [&](int times, bool measured, bool predicted) {
    for (int i = 0; i < times; ++i) oom.add(measured, predicted);
  };
  add(3, true, true);
  add(1, false, true);
  add(2, true, false);
  add(4, false, false);
  EXPECT_EQ(oom.n(), 10U);
  EXPECT_DOUBLE_EQ(*oom.accuracy(), 0.7);
  EXPECT_DOUBLE_EQ(*oom.precision(), 0.75);
  EXPECT_DOUBLE_EQ(*oom.recall(), 0.6);
}

TEST(OomStatistics, SharesOfNothingAreUndefined) {
  OomStatistics oom;
  oom.add(false, false);
  EXPECT_DOUBLE_EQ(*oom.accuracy(), 1);
  EXPECT_FALSE(oom.precision());
  EXPECT_FALSE(oom.recall());
}

// Without ties: 1 - 6 sum d^2 / (n (n^2 - 1)) with d = 1, 1, 1, 1, 0: 1 - 24 / 120.
TEST(Spearman, MatchesTheClosedFormWithoutTies) {
  EXPECT_NEAR(*spearman(pairs({1, 2, 3, 4, 5}, {20, 10, 40, 30, 50})), 0.8, 1e-12);
  EXPECT_NEAR(*spearman(pairs({1, 2, 3}, {3, 2, 1})), -1, 1e-12);
}

// Ranks 0, 1, 2, 3 against 0.5, 0.5, 2, 3; about their mean 1.5 the products sum to 4.5, the squares to 5 and
// 4.5.
TEST(Spearman, TiesShareTheMeanOfTheirRanks) {
  EXPECT_NEAR(*spearman(pairs({1, 2, 3, 4}, {1, 1, 2, 3})), 4.5 / std::sqrt(5 * 4.5), 1e-12);
}

TEST(Spearman, UndefinedWithoutAnOrder) {
  EXPECT_FALSE(spearman(pairs({1}, {1})));
  EXPECT_FALSE(spearman(pairs({1, 2, 3}, {5, 5, 5})));
  EXPECT_FALSE(spearman(pairs({2, 2}, {1, 3})));
}

TEST(Regret, IsWhatTheChoiceCosts) {
  EXPECT_DOUBLE_EQ(regret(pairs({5, 4, 8}, {1, 2, 3})), 1.25);
  EXPECT_DOUBLE_EQ(regret(pairs({4, 5, 8}, {1, 2, 3})), 1);
  EXPECT_DOUBLE_EQ(regret(pairs({6, 4}, {2, 2})), 1.5);  // the first of equals
}

// Group 7 is in perfect order; in group 3 the predicted best is measured at 2 against 1; group 1 has four
// rows only.
TEST(Ranking, AveragesOverGroupsThatAreLargeEnough) {
  std::vector<Pair> all =
      pairs({1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 9}, {1, 2, 3, 4, 5, 2, 1, 3, 4, 5, 4, 3, 2, 1, 9});
  const std::vector<int> groups = {7, 7, 7, 7, 7, 3, 3, 3, 3, 3, 1, 1, 1, 1, -1};
  const RankingStatistics ranking = ranking_statistics(all, groups);
  EXPECT_EQ(ranking.groups, 2U);
  EXPECT_NEAR(*ranking.spearman, (1 + 0.9) / 2, 1e-12);  // 1 - 6 x 2 / 120
  EXPECT_DOUBLE_EQ(*ranking.regret_mean, 1.5);
  EXPECT_DOUBLE_EQ(*ranking.regret_max, 2);
}

TEST(Ranking, OfNoGroupIsUndefined) {
  const RankingStatistics ranking = ranking_statistics(pairs({1, 2}, {1, 2}), std::vector<int>{0, 0});
  EXPECT_EQ(ranking.groups, 0U);
  EXPECT_FALSE(ranking.spearman);
  EXPECT_FALSE(ranking.regret_mean);
}

}  // namespace
}  // namespace shardscape::validate
