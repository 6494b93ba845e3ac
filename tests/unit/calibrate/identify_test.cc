// Is what the data cannot say recognised, and given up in the stated order?
#include "sweep/calibrate/identify.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace shardscape::calibrate {
namespace {

constexpr std::array kLow = {-5.0, -5.0}, kHigh = {5.0, 5.0};

std::vector<Judgement> judged(const std::array<double, 4>& information,
                              std::array<double, 2> point = {1, 1}) {
  return judge(information, point, kLow, kHigh);
}

TEST(Identify, IndependentParameters) {
  // Diagonal F: C_jj = 1 / (F_jj + 1).
  const auto judgements = judged({99, 0, 0, 0.5});
  EXPECT_EQ(judgements[0].verdict, Verdict::identified);
  EXPECT_NEAR(judgements[0].deviation, 0.1, 1e-12);
  EXPECT_EQ(judgements[1].verdict, Verdict::silent);
  EXPECT_NEAR(judgements[1].deviation, std::sqrt(1 / 1.5), 1e-12);
  EXPECT_NEAR(judgements[0].correlation, 0, 1e-9);
}

TEST(Identify, OnlyTheSumIsSeen) {
  // F = f [[1, 1], [1, 1]]: F + I has eigenvalues 2 f + 1 along (1, 1) and 1 along (1, -1), so C_jj = (1 / (2
  // f + 1) + 1) / 2 -> 1/2; the data alone have correlation -1.
  const auto judgements = judged({1e4, 1e4, 1e4, 1e4});
  for (std::size_t j = 0; j < 2; ++j) {
    EXPECT_EQ(judgements[j].verdict, Verdict::tied);
    EXPECT_EQ(judgements[j].with, 1 - j);
    EXPECT_NEAR(judgements[j].correlation, -1, 1e-6);
    EXPECT_NEAR(judgements[j].deviation, std::sqrt((1 / 20001.0 + 1) / 2), 1e-9);
  }
}

TEST(Identify, CorrelationBelowTheLimitIsNoTie) {
  // F = f [[1, c], [c, 1]] has F^-1 with correlation -c.
  const auto below = judged({1e4, 0.98e4, 0.98e4, 1e4});
  EXPECT_EQ(below[0].verdict, Verdict::identified);
  EXPECT_NEAR(below[0].correlation, -0.98, 1e-6);
  EXPECT_EQ(judged({1e6, 0.995e6, 0.995e6, 1e6})[0].verdict, Verdict::tied);
}

TEST(Identify, EndsOfTheRange) {
  const auto judgements = judged({100, 0, 0, 100}, {5, -5});
  EXPECT_EQ(judgements[0].verdict, Verdict::at_bound);
  EXPECT_EQ(judgements[1].verdict, Verdict::at_bound);
  EXPECT_EQ(judged({100, 0, 0, 100}, {4.9, -4.9})[0].verdict, Verdict::identified);
}

TEST(Identify, DeviationsScaleWithTheErrors) {
  // Errors twice as large: a quarter of the information.
  const std::vector<double> found = deviations(std::array{8.0, 0.0, 0.0, 0.0}, 2, 2);
  EXPECT_NEAR(found[0], 1 / std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(found[1], 1, 1e-12);
}

TEST(Identify, WhatIsGivenUpFirst) {
  const std::array<double, 4> point = {1, -3, 2, 0};
  using List = std::vector<std::size_t>;
  std::vector<Judgement> judgements(4);
  EXPECT_EQ(to_give_up(judgements, point), List{});
  judgements[2] = {Verdict::tied, 0.5};
  judgements[3] = {Verdict::tied, 0.6};
  EXPECT_EQ(to_give_up(judgements, point), List{3});
  judgements[0].verdict = judgements[1].verdict = Verdict::at_bound;
  EXPECT_EQ(to_give_up(judgements, point), List{1});
  judgements[0].verdict = judgements[3].verdict = Verdict::silent;
  EXPECT_EQ(to_give_up(judgements, point), (List{0, 3}));
}

}  // namespace
}  // namespace shardscape::calibrate
