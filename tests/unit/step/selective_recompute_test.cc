// What selective recompute of parts that a stack names takes: their forward again, with what they send, in both modes.
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "engine/model/block_kinds.h"
#include "engine/simulate.h"
#include "engine/step/layers/price_layers.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/outcome_of_plan.h"

namespace shardscape {
namespace {

/// Four layers, the first of them dense; 16 microbatches of one sequence on one GPU, two on eight.
Setting repeating(std::vector<RecomputePart> parts) {
  Setting s;
  s.model = test::llama_of_experts(4, 4, 1);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(8, 100e9);
  s.system.stack = test::plain_stack();
  s.system.stack.selective_recompute = std::move(parts);
  s.workload = test::training(1024, 16);
  return s;
}

ParallelPlan on_eight(std::int32_t pipeline, Recompute recompute) {
  ParallelPlan plan = test::plan_of(1, 1, pipeline, 8 / pipeline);
  plan.expert = 4;
  plan.recompute = recompute;
  return plan;
}

/// Forward of these operators in a layer of that kind, on one GPU.
double forward_of(const Setting& setting, std::size_t kind, const std::vector<std::string_view>& names) {
  const auto operators = model::block_operators(setting, kind, {}, 1024, model::Mode::training);
  double sum = 0;
  for (const model::Operator& op : operators) {
    for (const std::string_view name : names)
      if (op.name == name) sum += step::price(op, setting).forward.time.value();
  }
  return sum;
}

double recompute_of(Setting setting) {
  setting.system.fabric = test::crossbar(1);
  ParallelPlan plan = test::plan_of(1, 1, 1, 1);
  plan.recompute = Recompute::selective;
  return test::outcome_of(setting, plan).prediction.breakdown[TimeClass::recompute].value();
}

TEST(SelectiveRecompute, TakesTheForwardOfItsParts) {
  // 16 microbatches through a dense layer and three of experts.
  const auto expect = [](std::vector<RecomputePart> parts, const std::vector<std::string_view>& dense,
                         const std::vector<std::string_view>& experts) {
    const Setting setting = repeating(std::move(parts));
    const double expected = 16 * (forward_of(setting, 0, dense) + 3 * forward_of(setting, 1, experts));
    EXPECT_GT(expected, 0);
    EXPECT_NEAR(recompute_of(setting), expected, 1e-9 * expected);
  };
  using enum RecomputePart;
  expect({attention_core}, {"attention"}, {"attention"});
  expect({norms}, {"input_norm", "mlp_norm"}, {"input_norm", "mlp_norm"});
  expect({activations}, {"swiglu"}, {"swiglu"});
  expect({mlp, attention_core}, {"mlp_in", "swiglu", "mlp_out", "attention"}, {"attention"});
  expect({experts}, {},
         {"router", "expert_choice", "permute", "expert_in", "swiglu", "expert_out", "unpermute", "shared_in",
          "shared_out", "shared_sum"});
}

TEST(SelectiveRecompute, WholeLayersOfExpertsSendTheirTokensAgain) {
  // Dispatch and combine of forward, of backward, and of what is computed again: six calls where there are four.
  const Setting setting = repeating({RecomputePart::experts});
  const auto sent = [&](Recompute recompute) {
    return test::outcome_of(setting, on_eight(1, recompute)).bytes[ParallelGroup::expert].value();
  };
  EXPECT_NEAR(sent(Recompute::selective), 1.5 * sent(Recompute::none), 1e-6 * sent(Recompute::none));
}

TEST(SelectiveRecompute, BothModesAgree) {
  using enum RecomputePart;
  for (const std::vector<RecomputePart>& parts :
       {std::vector{norms, activations}, std::vector{norms, activations, attention_core},
        std::vector{experts, mlp}}) {
    const Setting setting = repeating(parts);
    for (const std::int32_t pipeline : {1, 2}) {
      const ParallelPlan plan = on_eight(pipeline, Recompute::selective);
      const Prediction fast = test::outcome_of(setting, plan).prediction;
      const Prediction slow = test::outcome_of(setting, plan, ExecutionMode::flattened).prediction;
      EXPECT_NEAR(fast.step_time / slow.step_time, 1, 5e-3) << parts.size() << ' ' << pipeline;
      if (pipeline == 1) {  // else the modes may take different stages for the critical one
        EXPECT_NEAR(fast.breakdown[TimeClass::recompute] / slow.breakdown[TimeClass::recompute], 1, 1e-6);
      }
      EXPECT_GT(fast.step_time,
                test::outcome_of(setting, on_eight(pipeline, Recompute::none)).prediction.step_time);
    }
  }
}

TEST(SelectiveRecompute, TheHostLaunchesWhatIsComputedAgain) {
  // A slow host paces every pass: a layer's backward and, of its forward, the share of the kernels that run again.
  Setting setting = repeating({RecomputePart::mlp});
  setting.model = test::llama(4, 1024, 16, 4, 4096, 32000);
  setting.system.stack.host.forward_layer = setting.system.stack.host.backward_layer = Seconds(1);
  setting.system.fabric = test::crossbar(1);
  ParallelPlan plan = test::plan_of(1, 1, 1, 1);
  const double none = test::outcome_of(setting, plan).prediction.step_time.value();
  plan.recompute = Recompute::selective;
  const double again = test::outcome_of(setting, plan).prediction.step_time.value();
  // Kernels of forward: two norms, QKV, rotary, core, projection, two residuals; gate and up, SwiGLU, down.
  EXPECT_NEAR(again - none, 16 * 4 * 3.0 / 11, 1e-6);
}

}  // namespace
}  // namespace shardscape
