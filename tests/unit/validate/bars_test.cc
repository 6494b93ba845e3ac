#include "sweep/validate/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shardscape::validate {
namespace {

TEST(Bars, ParseSharesAndFractions) {
  EXPECT_DOUBLE_EQ(parse_bar("step_time.mape=5%")->limit, 0.05);
  EXPECT_DOUBLE_EQ(parse_bar("step_time.max=9 %")->limit, 0.09);
  EXPECT_DOUBLE_EQ(parse_bar("ranking.spearman=0.9")->limit, 0.9);
  EXPECT_DOUBLE_EQ(parse_bar("ranking.regret_mean=1.03")->limit, 1.03);
}

TEST(Bars, SayWhatIsWrong) {
  EXPECT_NE(parse_bar("step_time.mape").error().find("STATISTIC=VALUE"), std::string::npos);
  EXPECT_NE(parse_bar("step_time.mpae=5%").error().find("did you mean 'step_time.mape'?"), std::string::npos);
  for (const char* text :
       {"step_time.mape=", "step_time.mape=five", "step_time.mape=-1%", "step_time.mape=nan"}) {
    EXPECT_FALSE(parse_bar(text)) << text;
  }
}

TEST(Bars, ErrorsAreBoundedAboveAccuraciesBelow) {
  const std::vector<Statistic> statistics = {
      {"step_time", "mape", 0.05}, {"oom", "accuracy", 0.97}, {"ttft", "mape", std::nullopt}};
  const std::vector<Bar> bars = {{"step_time.mape", 0.05}, {"step_time.mape", 0.049}, {"oom.accuracy", 0.97},
                                 {"oom.accuracy", 0.971},  {"ttft.mape", 0.1},        {"memory.mape", 0.1}};
  const std::vector<BarResult> results = check_bars(bars, statistics);
  ASSERT_EQ(results.size(), 4U);  // bars without a measurement are not checked
  EXPECT_TRUE(results[0].held);
  EXPECT_FALSE(results[1].held);
  EXPECT_TRUE(results[2].held);
  EXPECT_FALSE(results[3].held);
}

TEST(Bars, DefaultsAreOfStatisticsThatThereAre) {
  const std::vector<std::string> known = bar_statistics();
  for (const TableKind kind : {TableKind::plans, TableKind::gemm, TableKind::collectives}) {
    EXPECT_FALSE(default_bars(kind).empty());
    for (const Bar& bar : default_bars(kind)) {
      EXPECT_NE(std::ranges::find(known, bar.statistic), known.end()) << bar.statistic;
    }
  }
}

// FNV-1a of the empty text is the offset basis 0xcbf29ce484222325, of "a" 0xaf63dc4c8601ec8c (Fowler, Noll
// and Vo's published vectors); modulo 3 they are 2 and 1.
TEST(HoldOut, IsAFixedFunctionOfTheId) {
  static_assert(0xcbf29ce484222325ULL % 3 == 2 && 0xaf63dc4c8601ec8cULL % 3 == 1);
  EXPECT_FALSE(is_held_out("", {2, 3}));
  EXPECT_FALSE(is_held_out("a", {1, 3}));
  EXPECT_TRUE(is_held_out("a", {2, 3}));
}

TEST(HoldOut, TakesAboutItsShare) {
  int held = 0;
  for (int i = 0; i < 3000; ++i) held += is_held_out("row-" + std::to_string(i), {1, 3}) ? 1 : 0;
  EXPECT_NEAR(held, 1000, 100);  // four standard deviations of a fair draw
}

TEST(HoldOut, ParsesProperShares) {
  EXPECT_EQ(parse_hold_out("1/3")->of, 3U);
  EXPECT_EQ(parse_hold_out("2/5")->parts, 2U);
  for (const char* text : {"", "1", "3/3", "0/3", "1/1", "a/b", "1/3x"})
    EXPECT_FALSE(parse_hold_out(text)) << text;
}

}  // namespace
}  // namespace shardscape::validate
