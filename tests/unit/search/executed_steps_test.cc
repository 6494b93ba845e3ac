// Which steps does a search execute, and does it execute each only once?
#include "sweep/search/executed_steps.h"

#include <gtest/gtest.h>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::sweep {
namespace {

Setting executed_setting() {
  Setting s;
  s.model = test::llama(4, 1024, 16, 8, 4096, 32000);
  s.system.device = test::round_device();
  s.system.fabric = {"nodes", {test::dimension("inner", DimensionKind::switched, {8}, 50e9, 1e-6)}};
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, 16);
  return s;
}

ParallelPlan plan_of_zero(std::int32_t stage) {
  ParallelPlan plan = test::plan_of(2, 1, 1, 4);
  plan.zero_stage = stage;
  return plan;
}

// ZeRO 1 and 2 send the same, once per step, unless a stack scatters the gradients of every microbatch.
TEST(ExecutedSteps, StagesThatSendTheSameAreOne) {
  Setting setting = executed_setting();
  for (const Zero2Gradients gradients : {Zero2Gradients::last_microbatch, Zero2Gradients::per_microbatch}) {
    setting.system.stack.zero2_gradients = gradients;
    const bool one = gradients == Zero2Gradients::last_microbatch;
    const auto executed = [&](std::int32_t stage) {
      return Simulator(setting, {.mode = ExecutionMode::flattened}).run(plan_of_zero(stage));
    };
    const Prediction first = executed(1), second = executed(2);
    ASSERT_EQ(first.status, Status::ok);
    EXPECT_EQ(first.step_time == second.step_time, one);
    EXPECT_EQ(first.memory_peak == second.memory_peak, one);
    EXPECT_EQ(executed_plan(plan_of_zero(1), setting.system.stack) ==
                  executed_plan(plan_of_zero(2), setting.system.stack),
              one);
    for (const std::int32_t apart : {0, 3})
      EXPECT_EQ(executed_plan(plan_of_zero(apart), setting.system.stack), plan_of_zero(apart));
    const Prediction both = ExecutedSteps::with_times(second, first);
    EXPECT_EQ(both.memory_peak, second.memory_peak);  // a point's own
    EXPECT_EQ(both.step_time, first.step_time);
  }
}

/// Until it is told that this is enough.
const StepWatch kToTheEnd = [](Seconds) { return true; };

TEST(ExecutedSteps, AreExecutedOnceInEachGroup) {
  ExecutedSteps steps;
  int executions = 0;
  const auto of = [&](std::size_t group, std::int32_t zero) {
    const auto execute = [&](const StepWatch&) {
      Prediction prediction;
      prediction.step_time = Seconds(++executions);
      return prediction;
    };
    return steps.of(group, plan_of_zero(zero), kToTheEnd, execute).value().step_time;
  };
  EXPECT_EQ(of(0, 1), Seconds(1));
  EXPECT_EQ(of(0, 0), Seconds(2));
  EXPECT_EQ(of(1, 1), Seconds(3));
  EXPECT_EQ(of(0, 1), Seconds(1));
  EXPECT_EQ(executions, 3);
}

// What was given up is known to take longer than some time, and is executed again for those alone who want more of it.
TEST(ExecutedSteps, AreExecutedAgainWhereMoreIsWanted) {
  ExecutedSteps steps;
  int executions = 0;
  const auto within = [&](double most) {
    const auto execute = [&](const StepWatch& watch) {
      ++executions;
      Prediction prediction;
      for (int second = 0; second <= 10; ++second) {  // a step of 10 s, watched every second
        if (!watch(Seconds(second))) return prediction;
      }
      prediction.step_time = Seconds(10);
      return prediction;
    };
    return steps.of(
        0, plan_of_zero(1), [&](Seconds at_least) { return at_least.value() <= most; }, execute);
  };
  EXPECT_FALSE(within(4));
  EXPECT_EQ(executions, 1);
  EXPECT_FALSE(within(3.5));
  EXPECT_FALSE(within(4.5));  // it takes 5 s at least
  EXPECT_EQ(executions, 1);
  EXPECT_FALSE(within(7));
  EXPECT_EQ(executions, 2);
  EXPECT_EQ(within(10).value().step_time, Seconds(10));
  EXPECT_EQ(executions, 3);
  EXPECT_EQ(within(1).value().step_time, Seconds(10));  // known as a whole: who asks decides
  EXPECT_EQ(executions, 3);
}

}  // namespace
}  // namespace shardscape::sweep
