// Are bounds on results named so that files can be read back, and missed by what they are missed by?
#include "results_schema/rows/limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shardscape::results {
namespace {

TEST(Limits, NamesReadBack) {
  for (const Relation relation : enum_values<Relation>()) {
    for (const double bound : {2.0, 0.04, 7e10, 1e-9, 0.0, -3.5}) {
      const Limit limit{"ttft_p95_s", relation, bound, false};
      const auto back = limit_of_name(limit_name(limit));
      ASSERT_TRUE(back.has_value()) << limit_name(limit);
      EXPECT_EQ(*back, limit);
    }
  }
  EXPECT_EQ(limit_name({"ttft_p95_s", Relation::at_most, 2}), "ttft_p95_s<=2");
  for (const char* const other : {"none", "overloaded", "heads_by_tensor", "", "a<", "a<=x", "a=>2"})
    EXPECT_FALSE(limit_of_name(other).has_value()) << other;
  for (const std::string_view reason : enum_names<Reason>()) EXPECT_FALSE(limit_of_name(reason)) << reason;
}

TEST(Limits, AreMissedByAShareOfTheBound) {
  const auto by = [](Relation relation, double bound, double value) {
    return miss_of({"x", relation, bound, false}, value);
  };
  EXPECT_EQ(by(Relation::at_most, 2, 2), std::nullopt);
  EXPECT_DOUBLE_EQ(*by(Relation::at_most, 2, 3), 0.5);
  EXPECT_EQ(*by(Relation::below, 2, 2), 0);
  EXPECT_EQ(by(Relation::below, 2, 1.9), std::nullopt);
  EXPECT_EQ(by(Relation::at_least, 4, 4), std::nullopt);
  EXPECT_DOUBLE_EQ(*by(Relation::at_least, 4, 3), 0.25);
  EXPECT_EQ(*by(Relation::above, 4, 4), 0);
  EXPECT_EQ(*by(Relation::at_most, 0, 3), 3);  // of 0 there is no share
  EXPECT_TRUE(std::isinf(*by(Relation::at_most, 2, std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace shardscape::results
