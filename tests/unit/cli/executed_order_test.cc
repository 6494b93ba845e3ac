// Is an order said to turn over where executed values differ by more than they are rounded, and only there?
#include "sweep/cli/reports/executed_order.h"

#include <gtest/gtest.h>

#include <vector>

namespace shardscape::cli {
namespace {

std::string said(const std::vector<double>& costs) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < costs.size(); ++i) numbers.push_back(3 * i);
  return order_text(costs, numbers);
}

TEST(ExecutedOrder, HoldsWhereNothingChangesPlaces) {
  EXPECT_EQ(said({1, 2, 3}), "holds");
  EXPECT_EQ(said({1, 1, 1}), "holds");
  EXPECT_EQ(said({-3, -2}), "holds");  // of a column that is better the larger it is
}

// 1 in 1000 of the better one is the bound, on either side of it.
TEST(ExecutedOrder, TurnsOverBeyondTheBoundAlone) {
  EXPECT_EQ(said({1.00099, 1}), "holds to 0.1 %");
  EXPECT_EQ(said({1.00101, 1}), "turns over, the first was number 4");
  EXPECT_EQ(said({1, 5.00499, 5}), "holds to 0.1 %");
  EXPECT_EQ(said({1, 5.00501, 5}), "turns over below the first");
  EXPECT_EQ(said({-1000, -1000.9}), "holds to 0.1 %");
  EXPECT_EQ(said({-1000, -1001.1}), "turns over, the first was number 4");
}

// Many small steps add up: it is the worst of the rows before that counts.
TEST(ExecutedOrder, StepsAddUp) {
  EXPECT_EQ(said({1, 5.008, 5.004, 5}), "turns over below the first");
  EXPECT_EQ(said({5.008, 5.004, 5}), "turns over, the first was number 7");
}

}  // namespace
}  // namespace shardscape::cli
