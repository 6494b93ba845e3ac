// What a search executes once, and for which points.
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

TEST(ExecutedSteps, AreExecutedOnceInEachGroup) {
  ExecutedSteps steps;
  int executions = 0;
  const auto execute = [&] {
    Prediction prediction;
    prediction.step_time = Seconds(++executions);
    return prediction;
  };
  EXPECT_EQ(steps.of(0, plan_of_zero(1), execute).step_time, Seconds(1));
  EXPECT_EQ(steps.of(0, plan_of_zero(0), execute).step_time, Seconds(2));
  EXPECT_EQ(steps.of(1, plan_of_zero(1), execute).step_time, Seconds(3));
  EXPECT_EQ(steps.of(0, plan_of_zero(1), execute).step_time, Seconds(1));
  EXPECT_EQ(executions, 3);
}

}  // namespace
}  // namespace shardscape::sweep
