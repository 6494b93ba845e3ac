// Do sums of residuals come out as worked by hand?
#include "sweep/evidence/evidence_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace shardscape::evidence {
namespace {

Residual residual(double error, std::int64_t gpus = 8, const std::string& plan = "") {
  return {{Phase::training, "gpu", PolicyName::bf16, "dense", "soft", gpus}, plan, error};
}

TEST(Summarise, SigmaIsTheQuantileOfItsPlans) {
  // Ten plans with errors of 1 to 10 %, signs in turn. 0.6827 of the ten are 6.8: the seventh. Bias: half of the ten
  // signed errors, the fifth smallest, of -10, -8, -6, -4, -2, 1, ...
  std::vector<Residual> rows;
  for (int i = 1; i <= 10; ++i) rows.push_back(residual((i % 2 == 0 ? -0.01 : 0.01) * i, 8 - i % 3));
  const Table table = summarise(rows);
  ASSERT_EQ(table.cells.size(), 1U);
  const Cell& cell = table.cells[0];
  EXPECT_EQ(cell.rows, 10);
  EXPECT_EQ(cell.plans, 10);
  EXPECT_EQ(cell.gpus_low, 6);
  EXPECT_EQ(cell.gpus_high, 8);
  EXPECT_DOUBLE_EQ(cell.sigma, 0.07);
  EXPECT_DOUBLE_EQ(cell.bias, -0.02);
  EXPECT_TRUE(table.validate().empty());
}

TEST(Summarise, FewPlansClaimNoMoreThanTheirWorst) {
  // 0.6827 n is 0.68, 1.4 and 2.05: the largest each time.
  std::vector<Residual> rows = {residual(0.02)};
  for (const double worst : {0.02, 0.05, 0.3}) {
    EXPECT_DOUBLE_EQ(summarise(rows).cells.at(0).sigma, worst);
    rows.push_back(residual(rows.size() == 1 ? -0.05 : 0.3));
  }
}

TEST(Summarise, RowsOfOnePlanShareItsWeight) {
  // Three rows of plan a weigh a third each, b, c and d one each: the four weigh 4, and 0.6827 of that is
  // 2.73: 1, 2, 3 % (1 in all), 10 % (2), 20 % (3).
  const std::vector<Residual> rows = {residual(0.01, 8, "a"), residual(0.02, 8, "a"), residual(0.03, 8, "a"),
                                      residual(0.1, 8, "b"),  residual(-0.2, 8, "c"), residual(0.3, 8, "d")};
  const Cell cell = summarise(rows).cells.at(0);
  EXPECT_EQ(cell.rows, 6);
  EXPECT_EQ(cell.plans, 4);
  EXPECT_DOUBLE_EQ(cell.sigma, 0.2);
  // If rows count on their own, 0.6827 of six is 4.1, so sigma is the fifth error.
  std::vector<Residual> alone = rows;
  for (Residual& row : alone) row.plan.clear();
  EXPECT_DOUBLE_EQ(summarise(alone).cells.at(0).sigma, 0.2);
}

TEST(Summarise, RegimesAndSizesStandApart) {
  std::vector<Residual> rows;
  for (const std::int64_t gpus : {1, 8, 9, 64, 65, 512, 513, 10000}) rows.push_back(residual(0.1, gpus));
  rows.push_back(residual(0.1));
  rows.back().regime.precision = PolicyName::fp8;
  rows.push_back(residual(0.1));
  rows.back().regime.stack = "softer";
  rows.push_back(residual(0.1));
  rows.back().regime.phase = Phase::inference;
  const Table table = summarise(rows);
  ASSERT_EQ(table.cells.size(), 7U);
  EXPECT_EQ(table.cells[0].gpus_high, 8);
  EXPECT_EQ(table.cells[1].gpus_low, 9);
  EXPECT_EQ(table.cells[2].gpus_high, 512);
  EXPECT_EQ(table.cells[3].gpus_low, 513);
  std::vector<Residual> turned(rows.rbegin(), rows.rend());
  const Table again = summarise(turned);
  for (std::size_t i = 0; i < table.cells.size(); ++i) EXPECT_EQ(again.cells[i].rows, table.cells[i].rows);
  EXPECT_TRUE(summarise({}).cells.empty());
}

TEST(Summarise, RightOnTheMarkIsNoErrorOfNothing) {
  EXPECT_GT(summarise(std::vector{residual(0)}).cells.at(0).sigma, 0);
}

}  // namespace
}  // namespace shardscape::evidence
