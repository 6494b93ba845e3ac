// What does a constraint say about a plan, and what does a broken one say about itself?
#include "sweep/space/constraint.h"
#include "sweep/space/point_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardscape::sweep {
namespace {

/// tp 8, cp 2, pp 4, dp 3: 192 GPUs; 120 samples in microbatches of 2 over 3 replicas are 20 microbatches.
ParallelPlan example_plan() {
  ParallelPlan plan;
  plan.tensor = 8;
  plan.context = 2;
  plan.pipeline = 4;
  plan.data = 3;
  plan.sequence_parallel = true;
  plan.zero_stage = 1;
  plan.recompute = Recompute::selective;
  plan.microbatch = 2;
  plan.schedule = ScheduleKind::interleaved;
  plan.virtual_stages = 5;
  return plan;
}
WorkloadSpec example_workload() {
  WorkloadSpec workload;
  workload.sequence_length = 4096;
  workload.global_batch = 120;
  return workload;
}

bool holds(const std::string& text) {
  const auto constraint = Constraint::parse(text);
  EXPECT_TRUE(constraint.has_value()) << text << ": " << (constraint ? "" : constraint.error().message);
  return constraint && constraint->holds(example_plan(), example_workload());
}

TEST(Constraint, ReadsRatesWithTheirUnit) {
  WorkloadSpec workload;
  workload.load.emplace().request_rate = 4;
  for (const char* text : {"request_rate == 4 /s", "request_rate_per_s <= 240/min",
                           "request_rate > 180 /min and tp == 8", "request_rate <= 8 / 2"}) {
    const auto constraint = Constraint::parse(text);
    ASSERT_TRUE(constraint.has_value()) << text << ": " << constraint.error().message;
    EXPECT_TRUE(constraint->holds(example_plan(), workload)) << text;
  }
  // The same number per minute is the same rate in a study, to the last bit.
  for (int number = 1; number <= 200; ++number) {
    const std::string rate = std::to_string(number) + " /min";
    workload.load->request_rate = *parse_request_rate(rate);
    EXPECT_TRUE(Constraint::parse("request_rate == " + rate)->holds(example_plan(), workload)) << rate;
  }
  EXPECT_FALSE(Constraint::parse("request_rate <= 4 /seconds").has_value());
  EXPECT_TRUE(Constraint::parse("240 /min >= request_rate / gpus").has_value());
  for (const char* text : {"request_rate - 4 /s > 0", "-1 < 240 /min - request_rate / gpus"})
    EXPECT_TRUE(Constraint::parse(text).has_value()) << text;
  EXPECT_NE(Constraint::parse("-gpus < 4 /s").error().message.find("which 'gpus' is not"), std::string::npos);
  for (const char* text : {"tp - 4 /s > 0", "0 < 4 /s - tp", "1 == 2 * tp + 4 /s - 3"}) {
    const auto constraint = Constraint::parse(text);
    ASSERT_FALSE(constraint.has_value()) << text;
    const std::string& message = constraint.error().message;
    EXPECT_TRUE(message.find("'tp' stands beside") == 0 || message.find("'2' stands beside") == 0) << message;
  }
  for (const char* text : {"tp <= 4 /s", "180 /min > concurrency", "gpus * 2 == -(3 /s)"})
    EXPECT_FALSE(Constraint::parse(text).has_value()) << text;
}

TEST(Constraint, ReadsEveryName) {
  for (const char* text :
       {"tp == 8", "cp == 2", "pp == 4", "dp == 3", "sp", "sp == 1", "zero == 1", "mbs == 2", "vpp == 5",
        "gpus == 192", "microbatches == 20", "recompute == selective", "schedule == interleaved",
        "sequence_length == 4096", "global_batch == 120", "concurrency == 0"}) {
    EXPECT_TRUE(holds(text)) << text;
  }
}

TEST(Constraint, MicrobatchesAreWhole) {
  ParallelPlan plan;
  plan.data = 7;
  WorkloadSpec workload;
  workload.global_batch = 20;
  EXPECT_TRUE(Constraint::parse("microbatches == 2")->holds(plan, workload));
}

TEST(Constraint, OperatorsBindAsInArithmetic) {
  EXPECT_TRUE(holds("2 + 3 * 4 == 14"));
  EXPECT_TRUE(holds("(2 + 3) * 4 == 20"));
  EXPECT_TRUE(holds("10 - 4 - 3 == 3"));  // evaluated from the left
  EXPECT_TRUE(holds("64 / 4 / 2 == 8"));  // evaluated from the left
  EXPECT_TRUE(holds("7 % 4 * 2 == 6"));   // same level
  EXPECT_TRUE(holds("-2 * -3 == 6"));
  EXPECT_TRUE(holds("- - 2 == 2"));
  EXPECT_TRUE(holds("1.5e1 == 15 and .5 * 2 == 1"));
}

TEST(Constraint, LogicBindsOrThenAndThenNot) {
  EXPECT_TRUE(holds("true or false and false"));  // or is the loosest
  EXPECT_FALSE(holds("(true or false) and false"));
  EXPECT_TRUE(holds("not false or true"));  // (not false) or true
  EXPECT_FALSE(holds("not (false or true)"));
  EXPECT_FALSE(holds("not tp == 8"));  // not (tp == 8)
  EXPECT_TRUE(holds("not not sp"));
}

TEST(Constraint, ComparesAllSixWays) {
  EXPECT_TRUE(holds("tp < 9 and tp <= 8 and tp > 7 and tp >= 8 and tp == 8 and tp != 7"));
  EXPECT_FALSE(holds("tp < 8"));
  EXPECT_FALSE(holds("tp > 8"));
  EXPECT_FALSE(holds("tp <= 7"));
  EXPECT_FALSE(holds("tp >= 9"));
}

TEST(Constraint, NamesOfChoicesAreReadOnBothSidesBareOrQuoted) {
  EXPECT_TRUE(holds("selective == recompute"));
  EXPECT_TRUE(holds("recompute != 'full'"));
  EXPECT_TRUE(holds("schedule != 1f1b"));  // a name that begins with a digit
  EXPECT_TRUE(holds("schedule == \"interleaved\" and pp > 1"));
}

TEST(Constraint, TruthCountsAsOneInArithmetic) { EXPECT_TRUE(holds("sp + (pp > 1) + (dp > 100) == 2")); }

TEST(Constraint, DivisionByZeroSatisfiesNothing) {
  for (const char* text : {"tp % (cp - 2) == 0", "tp % (cp - 2) > 0", "(cp - 2) / (cp - 2) <= 1"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(Constraint, DivisionByAZeroThatIsWrittenOutIsAMistake) {
  for (const char* text : {"tp % 0 == 0", "tp / 0 > 0", "0 / 0 <= 1"}) {
    const auto constraint = Constraint::parse(text);
    ASSERT_FALSE(constraint.has_value()) << text;
    EXPECT_NE(constraint.error().message.find("division by 0"), std::string::npos) << text;
  }
}

TEST(Constraint, ListsTheNamesItUsesOnce) {
  const auto constraint = Constraint::parse("pp * tp <= 16 or tp == 1 and recompute == full");
  ASSERT_TRUE(constraint);
  EXPECT_EQ(constraint->names(), (std::vector<std::string_view>{"tp", "pp", "recompute"}));
  EXPECT_EQ(constraint->text(), "pp * tp <= 16 or tp == 1 and recompute == full");
}

struct Broken {
  const char* text;
  std::size_t offset;
  const char* says;  ///< part of the message
};

class BrokenConstraint : public testing::TestWithParam<Broken> {};

TEST_P(BrokenConstraint, SaysWhereAndWhatWouldBeRight) {
  const auto constraint = Constraint::parse(GetParam().text);
  ASSERT_FALSE(constraint.has_value()) << GetParam().text;
  EXPECT_EQ(constraint.error().offset, GetParam().offset) << constraint.error().message;
  EXPECT_NE(constraint.error().message.find(GetParam().says), std::string::npos)
      << constraint.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenConstraint,
    testing::Values(
        Broken{"", 0, "empty"}, Broken{"   ", 0, "empty"}, Broken{"tp <= ", 6, "the end of the expression"},
        Broken{"tq <= 4", 0, "did you mean 'tp'"}, Broken{"pp < 2 and mbss == 1", 11, "did you mean 'mbs'"},
        Broken{"pp < banana", 5, "known names: tp, cp"}, Broken{"tp", 0, "a condition is due"},
        Broken{"tp * 2 + 1", 0, "a condition is due"}, Broken{"not tp", 4, "a condition is due"},
        Broken{"tp > 1 and pp", 11, "a condition is due"},
        Broken{"recompute == ful", 13, "did you mean 'full'"},
        Broken{"recompute == 2", 13, "one of its names"}, Broken{"recompute < full", 10, "no order"},
        Broken{"recompute", 0, "a condition is due"}, Broken{"recompute + 1 == 2", 0, "is not a number"},
        Broken{"1 < tp < 8", 7, "do not chain"}, Broken{"(tp < 8", 7, "')' is due"},
        Broken{"tp < 8)", 6, "unexpected ')'"}, Broken{"tp < 8 pp > 2", 7, "unexpected 'pp'"},
        Broken{"tp = 8", 3, "write '=='"}, Broken{"tp < 8 && pp < 2", 7, "write 'and'"},
        Broken{"tp < 8 || pp < 2", 7, "write 'or'"}, Broken{"!sp", 0, "write 'not'"},
        Broken{"tp # 8", 3, "unexpected character '#'"}, Broken{"recompute == 'full", 13, "never closed"},
        Broken{"tp == 'full'", 6, "has no meaning here"}, Broken{"tp == 4x", 6, "unknown name '4x'"},
        Broken{"and tp > 1", 0, "is due here"}, Broken{"* 2 > 1", 0, "is due here"}));

TEST(Constraint, DeepNestingIsAnErrorNotACrash) {
  const std::string open(100'000, '(');
  EXPECT_FALSE(Constraint::parse(open + "tp"));
  EXPECT_FALSE(Constraint::parse(std::string(100'000, '-') + "1 < 2"));
  std::string wide = "1";
  for (int i = 0; i < 60; ++i) wide = "1 + (" + wide + ")";  // needs a value on the stack per level
  const auto constraint = Constraint::parse(wide + " > 0");
  ASSERT_FALSE(constraint);
  EXPECT_NE(constraint.error().message.find("too deeply"), std::string::npos);
}

}  // namespace
}  // namespace shardscape::sweep
