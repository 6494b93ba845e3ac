// Are the Pareto front and the best points those of brute force, in whatever order the rows come?
#include "results_schema/rows/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "engine/base/counter_rng.h"

namespace shardscape::results {
namespace {

struct Row {
  std::uint64_t id;
  Status status;
  std::vector<double> values;
};

std::vector<Row> random_rows(std::uint64_t seed, std::size_t objectives, std::size_t count) {
  CounterRng rng(seed, 0);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < count; ++i) {
    Row row{i * 3, rng.below(4) == 0 ? Status::memory : Status::ok, {}};
    for (std::size_t k = 0; k < objectives; ++k) row.values.push_back(static_cast<double>(rng.below(12)));
    if (rng.below(20) == 0) row.values[0] = std::numeric_limits<double>::quiet_NaN();
    rows.push_back(std::move(row));
  }
  for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[rng.below(i)]);
  return rows;
}

bool rankable(const Row& row) {
  return row.status == Status::ok && std::ranges::none_of(row.values, [](double v) { return v != v; });
}

bool no_worse(const Row& a, const Row& b, const std::vector<Better>& directions) {
  for (std::size_t k = 0; k < directions.size(); ++k) {
    if (directions[k] == Better::larger ? a.values[k] < b.values[k] : a.values[k] > b.values[k]) return false;
  }
  return true;
}

/// By the definition: on the front unless another is no worse everywhere and either differs or has a smaller
/// id.
std::vector<std::uint64_t> brute_front(const std::vector<Row>& rows, const std::vector<Better>& directions) {
  std::vector<std::uint64_t> front;
  for (const Row& row : rows) {
    const bool beaten = std::ranges::any_of(rows, [&](const Row& other) {
      return rankable(other) && other.id != row.id && no_worse(other, row, directions) &&
             (other.values != row.values || other.id < row.id);
    });
    if (rankable(row) && !beaten) front.push_back(row.id);
  }
  std::ranges::sort(front);
  return front;
}

class SummaryOracle : public ::testing::TestWithParam<std::vector<Better>> {};

TEST_P(SummaryOracle, FrontAndTopEqualBruteForce) {
  const auto& directions = GetParam();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto rows = random_rows(seed, directions.size(), 200);
    SummaryBuilder builder(directions);
    for (const Row& row : rows) builder.add(row.id, row.status, Reason::none, row.values);
    const Summary summary = builder.finish();

    std::vector<std::uint64_t> front;
    for (const RankedPoint& point : summary.pareto) front.push_back(point.point_id);
    std::ranges::sort(front);
    EXPECT_EQ(front, brute_front(rows, directions));

    std::erase_if(rows, [](const Row& row) { return !rankable(row); });
    std::ranges::sort(rows, [&](const Row& a, const Row& b) {
      if (a.values[0] != b.values[0])
        return (a.values[0] < b.values[0]) == (directions[0] == Better::smaller);
      return a.id < b.id;
    });
    ASSERT_EQ(summary.top.size(), kTopCount);
    for (std::size_t i = 0; i < kTopCount; ++i) {
      EXPECT_EQ(summary.top[i].point_id, rows[i].id);
      EXPECT_EQ(summary.top[i].values, rows[i].values);
    }
  }
}

// Rows in parts of any size, the parts in any order: the summary of all of them.
TEST_P(SummaryOracle, PartsAddUp) {
  const auto& directions = GetParam();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CounterRng rng(seed, 1);
    SummaryBuilder whole(directions), parts(directions);
    SummaryBuilder part(directions);
    for (const Row& row : random_rows(seed, directions.size(), 200)) {
      const Reason reason = row.status == Status::ok ? Reason::none : Reason::memory_capacity;
      whole.add(row.id, row.status, reason, row.values);
      part.add(row.id, row.status, reason, row.values);
      if (rng.below(10) != 0) continue;
      parts.add(part.finish());
      part = SummaryBuilder(directions);
    }
    parts.add(part.finish());
    const Summary expected = whole.finish(), summary = parts.finish();
    EXPECT_EQ(summary.statuses, expected.statuses);
    EXPECT_EQ(summary.reasons, expected.reasons);
    EXPECT_EQ(summary.pareto, expected.pareto);
    EXPECT_EQ(summary.top, expected.top);
  }
}

INSTANTIATE_TEST_SUITE_P(Directions, SummaryOracle,
                         ::testing::Values(std::vector<Better>{Better::smaller},
                                           std::vector<Better>{Better::larger, Better::smaller},
                                           std::vector<Better>{Better::smaller, Better::smaller},
                                           std::vector<Better>{Better::smaller, Better::larger,
                                                               Better::smaller}));

TEST(Summary, CountsWithTheFirstExample) {
  SummaryBuilder builder({Better::smaller});
  builder.add(9, Status::memory, Reason::memory_capacity, std::vector<double>{1.0});
  builder.add(4, Status::memory, Reason::memory_capacity, std::vector<double>{1.0});
  builder.add(5, Status::ok, Reason::none, std::vector<double>{2.0});
  const Summary summary = builder.finish();
  EXPECT_EQ(summary.statuses, (std::vector<CodeCount>{{0, 1, 5}, {3, 2, 4}}));
  EXPECT_EQ(summary.reasons,
            (std::vector<CodeCount>{{static_cast<std::uint8_t>(Reason::memory_capacity), 2, 4}}));
  ASSERT_EQ(summary.top.size(), 1U);
  EXPECT_EQ(summary.top.front(), (RankedPoint{5, {2.0}}));
}

TEST(Summary, NothingFeasibleOrNoObjectives) {
  SummaryBuilder none({});
  none.add(0, Status::ok, Reason::none, {});
  EXPECT_TRUE(none.finish().pareto.empty());
  EXPECT_EQ(none.finish().statuses.size(), 1U);
  // A summary that a damaged file may contain.
  none.add(Summary{{{0, 2, 1}}, {}, {{1, {}}}, {{1, {}}, {2, {}}}});
  EXPECT_TRUE(none.finish().pareto.empty() && none.finish().top.empty());
  EXPECT_EQ(none.finish().statuses, (std::vector<CodeCount>{{0, 3, 0}}));
  EXPECT_TRUE(SummaryBuilder({Better::smaller}).finish().top.empty());
}

}  // namespace
}  // namespace shardscape::results
