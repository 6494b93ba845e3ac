// Rank orders as text, and the products of a plan's degrees.
#include "engine/spec/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace shardscape {
namespace {

TEST(RankOrder, RoundTripOfAllPermutations) {
  RankOrder order = {PlanAxis::tensor, PlanAxis::context, PlanAxis::data, PlanAxis::pipeline};
  std::set<std::string> texts;
  do {
    const std::string text = to_string(order);
    EXPECT_EQ(parse_rank_order(text), order) << text;
    texts.insert(text);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(texts.size(), 24U);
  EXPECT_TRUE(texts.contains("tp-cp-dp-pp"));
  EXPECT_EQ(to_string(kDefaultRankOrder), "tp-cp-dp-pp");
}

TEST(RankOrder, AnythingElseIsRefused) {
  for (const char* text :
       {"", "tp", "tp-cp-dp", "tp-cp-dp-pp-", "-tp-cp-dp-pp", "tp-cp-dp-pp-tp", "tp-tp-dp-pp", "tp-cp-dp-xx",
        "tp cp dp pp", "TP-CP-DP-PP", "tp--dp-pp", "tp-cp-dp-pp ", "---"}) {
    EXPECT_EQ(parse_rank_order(text), std::nullopt) << text;
  }
}

TEST(ParallelPlan, DegreesAndProduct) {
  ParallelPlan plan;
  plan.tensor = 2;
  plan.context = 3;
  plan.data = 5;
  plan.pipeline = 7;
  EXPECT_EQ(plan.degree(PlanAxis::tensor), 2);
  EXPECT_EQ(plan.degree(PlanAxis::context), 3);
  EXPECT_EQ(plan.degree(PlanAxis::data), 5);
  EXPECT_EQ(plan.degree(PlanAxis::pipeline), 7);
  EXPECT_EQ(plan.gpus(), 210);
  plan.tensor = plan.data = 65536;  // more than 32 bits
  plan.context = plan.pipeline = 1;
  EXPECT_EQ(plan.gpus(), 1LL << 32);
}

}  // namespace
}  // namespace shardscape
