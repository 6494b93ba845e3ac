// Are the right rows on the page?
#include "results_schema/report/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "engine/base/counter_rng.h"

namespace shardscape::report {
namespace {

using results::Better;
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

std::vector<std::size_t> best_rows(const std::vector<double>& values, Better better, std::size_t count) {
  BestRows best(better, count);
  for (std::size_t row = 0; row < values.size(); ++row) best.offer(row, values[row]);
  return best.rows();
}

std::vector<std::size_t> sample_rows(const std::vector<std::uint64_t>& ids,
                                     const std::vector<std::size_t>& keep, std::size_t limit) {
  SampledRows sample(limit);
  for (std::size_t row = 0; row < ids.size(); ++row) sample.offer(lot_of(ids[row]), row);
  EXPECT_EQ(sample.offered(), ids.size());
  std::vector<std::size_t> rows = sample.rows(keep), known = sample.drawn();
  known.insert(known.end(), keep.begin(), keep.end());
  std::ranges::sort(known);
  for (const std::size_t row : rows) EXPECT_TRUE(std::ranges::binary_search(known, row)) << row;
  return rows;
}

TEST(RankedRows, BestFirstEqualsByRowMissingLast) {
  const std::vector<double> values = {3, kNoValue, 1, 3, 2, kNoValue};
  EXPECT_EQ(ranked_rows(values, Better::smaller), (std::vector<std::size_t>{2, 4, 0, 3, 1, 5}));
  EXPECT_EQ(ranked_rows(values, Better::larger), (std::vector<std::size_t>{0, 3, 4, 2, 1, 5}));
}

TEST(BestRows, AreTheHeadOfTheRanking) {
  const std::vector<double> values = {3, kNoValue, 1, 3, 2};
  EXPECT_EQ(best_rows(values, Better::smaller, 3), (std::vector<std::size_t>{2, 4, 0}));
  EXPECT_EQ(best_rows(values, Better::larger, 2), (std::vector<std::size_t>{0, 3}));
  EXPECT_EQ(best_rows(values, Better::smaller, 10), (std::vector<std::size_t>{2, 4, 0, 3}));
  EXPECT_TRUE(best_rows({}, Better::smaller, 3).empty());
}

TEST(BestRows, AreThoseOfASortedTable) {
  CounterRng rng(13, 0);
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<double> values;
    const std::size_t rows = rng.below(400);
    for (std::size_t row = 0; row < rows; ++row)
      values.push_back(rng.below(10) == 0 ? kNoValue : static_cast<double>(rng.below(60)));
    const Better better = repeat % 2 == 0 ? Better::smaller : Better::larger;
    const std::size_t count = rng.below(50);
    std::vector<std::size_t> expected = ranked_rows(values, better);
    std::erase_if(expected, [&](std::size_t row) { return std::isnan(values[row]); });
    if (expected.size() > count) expected.resize(count);
    EXPECT_EQ(best_rows(values, better, count), expected) << "repeat " << repeat;
  }
}

TEST(ParetoRowsPerGroup, EachGroupHasAFrontOfItsOwn) {
  // Smaller time and larger rate are better. Group 8: row 0 (1 s, 5) beats row 3 (2 s, 4), row 5 (3 s, 9) is
  // the fastest. Group 32: row 2 (4 s, 7) is beaten by row 0, but that is of another group; row 4 (5 s, 7) is
  // beaten in its own. Row 1 is of no group.
  const std::vector<double> groups = {8, kNoValue, 32, 8, 32, 8};
  const std::vector<std::vector<double>> columns = {{1, 0, 4, 2, 5, 3}, {5, 99, 7, 4, 7, 9}};
  const std::vector<Better> directions = {Better::smaller, Better::larger};
  FrontRowsPerGroup fronts(directions);
  for (std::size_t row = 0; row < groups.size(); ++row)
    fronts.offer(row, groups[row], std::vector{columns[0][row], columns[1][row]});
  auto rows = fronts.rows();
  std::ranges::sort(rows);
  EXPECT_EQ(rows, (std::vector<std::size_t>{0, 2, 5}));
}

TEST(ParetoRows, AreThoseThatNoneBeats) {
  CounterRng rng(11, 0);
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<std::vector<double>> columns(2);
    const std::size_t rows = 1 + rng.below(60);
    for (auto& column : columns) {
      for (std::size_t row = 0; row < rows; ++row)
        column.push_back(rng.below(10) == 0 ? kNoValue : static_cast<double>(rng.below(12)));
    }
    const std::vector<Better> directions = {Better::smaller, Better::larger};
    std::vector<std::size_t> expected;
    for (std::size_t row = 0; row < rows; ++row) {
      const double x = columns[0][row], y = columns[1][row];
      bool on_front = !std::isnan(x) && !std::isnan(y);
      for (std::size_t other = 0; other < rows; ++other) {
        const double u = columns[0][other], v = columns[1][other];
        const bool as_good = u <= x && v >= y;  // false with NaN
        if (as_good && (u < x || v > y || other < row)) on_front = false;
      }
      if (on_front) expected.push_back(row);
    }
    FrontRows front(directions);
    for (std::size_t row = 0; row < rows; ++row)
      front.offer(row, std::vector{columns[0][row], columns[1][row]});
    std::vector<std::size_t> found = front.rows();
    std::ranges::sort(found);
    EXPECT_EQ(found, expected) << "repeat " << repeat;
  }
}

TEST(SampleRows, TakesAllWhereThereIsRoom) {
  const std::vector<std::uint64_t> ids = {4, 9, 12};
  EXPECT_EQ(sample_rows(ids, {}, 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(sample_rows({}, {}, 3).empty());
}

TEST(SampleRows, KeepsWhatMustBeKeptAndFillsTheRest) {
  std::vector<std::uint64_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 500);
  const std::vector<std::size_t> keep = {17, 3, 999, 17, 0};  // one of them twice
  const std::vector<std::size_t> rows = sample_rows(ids, keep, 100);
  EXPECT_EQ(rows.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(rows));
  EXPECT_EQ(std::set<std::size_t>(rows.begin(), rows.end()).size(), rows.size());
  for (const std::size_t row : keep) EXPECT_TRUE(std::ranges::binary_search(rows, row)) << row;
  EXPECT_EQ(rows, sample_rows(ids, keep, 100));
  // Where even those are too many they are all there, and nothing else.
  EXPECT_EQ(sample_rows(ids, keep, 2), (std::vector<std::size_t>{0, 3, 17, 999}));
}

TEST(SampleRows, WhoIsTakenDependsOnTheIdAlone) {
  std::vector<std::uint64_t> ids(2000);
  std::iota(ids.begin(), ids.end(), 0);
  const auto taken = [](const std::vector<std::uint64_t>& from, std::size_t limit) {
    std::set<std::uint64_t> result;
    for (const std::size_t row : sample_rows(from, {}, limit)) result.insert(from[row]);
    return result;
  };
  const auto few = taken(ids, 200), many = taken(ids, 400);
  EXPECT_TRUE(std::ranges::includes(many, few));
  // Of half the points those are taken that the whole would take of this half with its limit.
  const std::vector<std::uint64_t> half(ids.begin(), ids.begin() + 1000);
  const auto of_whole =
      static_cast<std::size_t>(std::ranges::count_if(few, [](std::uint64_t id) { return id < 1000; }));
  const auto of_half = taken(half, of_whole);
  EXPECT_TRUE(std::ranges::includes(few, of_half));
  // Spread over the whole space: 200 of 2,000 leave neither half with less than a quarter.
  EXPECT_GT(of_whole, 50U);
  EXPECT_LT(of_whole, 150U);
}

}  // namespace
}  // namespace shardscape::report
