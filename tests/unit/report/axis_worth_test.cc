// Does the page say rightly what the values of an axis are worth?
#include "results_schema/report/axis_worth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "engine/base/counter_rng.h"
#include "engine/base/nearest_rank.h"

namespace shardscape::report {
namespace {

using results::Better;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One axis, its rows taken `at_once` at a time. `sample`: how many of the feasible rows are known beforehand.
std::vector<AxisValue> axis_values(const std::vector<double>& axis, const std::vector<bool>& feasible,
                                   const std::vector<double>& objective, Better better,
                                   std::size_t sample = 0, std::size_t at_once = 100) {
  std::vector<double> known;
  for (std::size_t row = 0; row < axis.size() && known.size() < sample; ++row) {
    if (feasible[row] && !std::isnan(objective[row])) known.push_back(objective[row]);
  }
  AxisWorth worth(1, known, better);
  const std::vector<std::uint8_t> flags(feasible.begin(), feasible.end());
  const auto for_each_range = [&](const auto& use) {
    for (std::size_t first = 0; first < axis.size(); first += at_once) {
      const std::size_t count = std::min(at_once, axis.size() - first);
      const std::span<const double> values = std::span(axis).subspan(first, count);
      use(RatedRows{first,
                    std::span(flags).subspan(first, count),
                    std::span(objective).subspan(first, count),
                    {&values, 1}});
    }
  };
  for_each_range([&](const RatedRows& rows) { worth.count(rows); });
  worth.end_count();
  if (worth.has_to_collect()) for_each_range([&](const RatedRows& rows) { worth.collect(rows); });
  return worth.values(0);
}

TEST(NearestRank, IsTheSmallestValueThatCoversTheShare) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(nearest_rank(values, 0.05), 1);  // rank ceil(0.5) = 1
  EXPECT_EQ(nearest_rank(values, 0.1), 1);   // 1 covers exactly a tenth
  EXPECT_EQ(nearest_rank(values, 0.11), 2);
  EXPECT_EQ(nearest_rank(values, 0.5), 5);
  EXPECT_EQ(nearest_rank(values, 0.99), 10);
  EXPECT_EQ(nearest_rank(values, 1.0), 10);
  EXPECT_EQ(nearest_rank(std::vector<double>{7}, 0.01), 7);
  EXPECT_TRUE(std::isnan(nearest_rank({}, 0.5)));
}

TEST(NearestRank, IsNotFooledByRounding) {
  std::vector<double> values(30);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  for (int tenths = 1; tenths <= 10; ++tenths)
    EXPECT_EQ(nearest_rank(values, 0.1 * tenths), 3 * tenths) << tenths;
}

TEST(AxisValues, HandDerived) {
  const std::vector<double> axis = {2, 1, 2, 2, 1, 2, 4, 2};
  const std::vector<bool> feasible = {true, true, true, false, false, true, false, true};
  const std::vector<double> time = {8, 5, 6, 1, kNaN, 6, kNaN, kNaN};
  const auto values = axis_values(axis, feasible, time, Better::smaller);
  ASSERT_EQ(values.size(), 3U);
  EXPECT_EQ(values[0].value, 1);
  EXPECT_EQ(values[0].points, 2U);
  EXPECT_EQ(values[0].feasible, 1U);
  EXPECT_EQ(values[0].best, 5);
  EXPECT_EQ(values[0].worst, 5);
  EXPECT_EQ(values[0].best_row, 1U);
  // Of value 2 the feasible rows with a time are 0, 2 and 5 with 8, 6, 6: ranks 1, 2, 3 of 3 at the
  // quartiles.
  EXPECT_EQ(values[1].points, 5U);
  EXPECT_EQ(values[1].feasible, 4U);
  EXPECT_EQ(values[1].best, 6);
  EXPECT_EQ(values[1].quarter, 6);
  EXPECT_EQ(values[1].median, 6);
  EXPECT_EQ(values[1].three_quarters, 8);
  EXPECT_EQ(values[1].worst, 8);
  EXPECT_EQ(values[1].best_row, 2U);
  EXPECT_EQ(values[2].feasible, 0U);
  EXPECT_TRUE(std::isnan(values[2].best));
  EXPECT_TRUE(std::isnan(values[2].median));
  EXPECT_NEAR(spread_of_best(values), 6.0 / 5 - 1, 1e-15);
}

TEST(AxisValues, LargerIsBetterTurnsTheOrder) {
  const std::vector<double> axis = {1, 1, 1, 1};
  const std::vector<bool> feasible(4, true);
  const std::vector<double> mfu = {0.1, 0.4, 0.3, 0.2};
  const auto values = axis_values(axis, feasible, mfu, Better::larger, 2);
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values[0].best, 0.4);
  EXPECT_EQ(values[0].best_row, 1U);
  EXPECT_EQ(values[0].quarter, 0.4);  // the best quarter of four is one
  EXPECT_EQ(values[0].median, 0.3);
  EXPECT_EQ(values[0].three_quarters, 0.2);
  EXPECT_EQ(values[0].worst, 0.1);
  EXPECT_EQ(spread_of_best(values), 0);
}

TEST(AxisValues, AgreeWithBruteForce) {
  CounterRng rng(5, 1);
  for (int repeat = 0; repeat < 60; ++repeat) {
    const std::size_t rows = 1 + rng.below(200);
    std::vector<double> axis, time;
    std::vector<bool> feasible;
    for (std::size_t row = 0; row < rows; ++row) {
      axis.push_back(static_cast<double>(rng.below(5)));
      feasible.push_back(rng.below(3) != 0);
      time.push_back(feasible.back() ? static_cast<double>(1 + rng.below(40)) : kNaN);
    }
    // Edges: none, so that the second pass finds all; some; all, so that the first does.
    const std::size_t sample = repeat % 3 == 0 ? 0 : repeat % 3 == 1 ? rng.below(20) : rows;
    const auto values = axis_values(axis, feasible, time, Better::smaller, sample, 1 + rng.below(60));
    const std::set<double> distinct(axis.begin(), axis.end());
    ASSERT_EQ(values.size(), distinct.size());
    auto expected = distinct.begin();
    for (const AxisValue& value : values) {
      EXPECT_EQ(value.value, *expected++);
      std::vector<double> times;
      std::uint64_t points = 0;
      for (std::size_t row = 0; row < rows; ++row) {
        if (axis[row] != value.value) continue;
        ++points;
        if (feasible[row]) times.push_back(time[row]);
      }
      EXPECT_EQ(value.points, points);
      EXPECT_EQ(value.feasible, times.size());
      if (times.empty()) continue;
      EXPECT_EQ(value.best, *std::ranges::min_element(times));
      EXPECT_EQ(time[value.best_row], value.best);
      // The median is the smallest time that half of them do not exceed.
      const auto covers = [&](double limit, double share) {
        const auto below = std::ranges::count_if(times, [&](double t) { return t <= limit; });
        return static_cast<double>(below) >= share * static_cast<double>(times.size());
      };
      for (const auto& [quantile, share] : {std::pair{value.quarter, 0.25},
                                            {value.median, 0.5},
                                            {value.three_quarters, 0.75},
                                            {value.worst, 1.0}}) {
        EXPECT_TRUE(covers(quantile, share));
        EXPECT_NE(std::ranges::find(times, quantile), times.end());
        for (const double smaller : times) {
          if (smaller < quantile) {
            EXPECT_FALSE(covers(smaller, share));
          }
        }
      }
    }
  }
}

TEST(AxisValues, RowsWithoutAnObjectiveCountButDoNotRank) {
  // A NaN on the axis is no value; a feasible row without an objective is feasible all the same.
  const auto values =
      axis_values({1, kNaN, 1, 1}, {true, true, true, false}, {kNaN, 1, 4, 2}, Better::smaller);
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values[0].points, 3U);
  EXPECT_EQ(values[0].feasible, 2U);
  EXPECT_EQ(values[0].best, 4);
  EXPECT_EQ(values[0].median, 4);
  EXPECT_EQ(values[0].best_row, 2U);
}

TEST(AxisWorth, KnownEdgesNeedNoSecondPass) {
  const std::vector<double> axis = {1, 1, 1}, time = {3, 1, 2};
  const std::vector<std::uint8_t> feasible = {1, 1, 1};
  const std::span<const double> values = axis;
  for (const bool all : {true, false}) {
    AxisWorth worth(1, all ? time : std::vector<double>{2}, Better::smaller);
    worth.count({0, feasible, time, {&values, 1}});
    worth.end_count();
    EXPECT_EQ(worth.has_to_collect(), !all);  // the quartiles 1 and 3 are in bins, the median is an edge
  }
}

}  // namespace
}  // namespace shardscape::report
