// Dualpipe, passes in pairs and uneven pipelines through every pass of a training step, in both modes.
#include <gtest/gtest.h>

#include <vector>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

/// A GPT of equal layers whose messages and ends cost next to nothing.
Setting level_setting(std::int64_t ranks, std::int64_t batch) {
  Setting s;
  s.model = test::gpt(8, 1024, 16, 64, 2048);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, 1e18, 0);
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, batch);
  return s;
}

/// Layers of experts on pairs of GPUs, their exchanges over slow links, boundaries between stages over fast ones.
Setting exchange_setting(std::int64_t ranks, std::int64_t batch) {
  Setting s = level_setting(ranks, batch);
  s.model = test::llama(8, 1024, 16, 8, 4096, 64);
  MixtureOfExperts moe;
  moe.experts = 8;
  moe.top_k = 2;
  moe.expert_ffn_hidden = 2048;
  s.model.moe = moe;
  s.system.fabric = {"pairs", {test::dimension("pair", DimensionKind::switched, {2}, 20e9, 0)}};
  if (ranks > 2)
    s.system.fabric.dimensions.push_back(
        test::dimension("stages", DimensionKind::switched, {ranks / 2}, 1e18, 0));
  return s;
}

Prediction predict_mode(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode,
                        Details* details = nullptr) {
  Simulator simulator(setting, {.time_infeasible = true, .mode = mode});
  return simulator.run(plan, {}, details);
}

ParallelPlan dual_plan(std::int32_t data, std::int32_t stages) {
  ParallelPlan plan = test::plan_of(1, 1, stages, data);
  plan.schedule = ScheduleKind::dualpipe;
  return plan;
}

TEST(DualPipe, BothModesTakeThePipelinesTime) {
  for (const std::int32_t stages : {2, 4, 8}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      const Setting setting = level_setting(stages, 3 * stages + stages % 2);
      ParallelPlan plan = dual_plan(1, stages);
      plan.recompute = recompute;
      const Prediction h = predict_mode(setting, plan, ExecutionMode::hierarchical);
      const Prediction f = predict_mode(setting, plan, ExecutionMode::flattened);
      ASSERT_TRUE(h.status == Status::ok || h.status == Status::memory) << name_of(h.reason);
      EXPECT_NEAR(f.step_time / h.step_time, 1, 1e-6) << stages;
      for (const Prediction& p : {h, f}) EXPECT_NEAR(p.breakdown.total() / p.step_time, 1, 1e-9);
      EXPECT_NEAR(f.breakdown[TimeClass::compute] / h.breakdown[TimeClass::compute], 1, 1e-6);
    }
  }
}

TEST(DualPipe, ItsBubbleIsSmallerThanThatOf1f1b) {
  // DeepSeek-V3 report, table 2: (p/2 - 1) (F&B + B - 3 W) against (p - 1) (F + B). With F&B = F + B and backwards of
  // twice a forward about 2 F (p/2 - 1) against 3 F (p - 1).
  const Setting setting = level_setting(8, 32);
  ParallelPlan plain = dual_plan(1, 8);
  plain.schedule = ScheduleKind::one_f_one_b;
  const Prediction dual = predict_mode(setting, dual_plan(1, 8), ExecutionMode::hierarchical);
  const Prediction one = predict_mode(setting, plain, ExecutionMode::hierarchical);
  EXPECT_GT(dual.breakdown[TimeClass::bubble], Seconds(0));
  EXPECT_LT(dual.breakdown[TimeClass::bubble], 0.45 * one.breakdown[TimeClass::bubble]);
  EXPECT_NEAR(dual.breakdown[TimeClass::compute] / one.breakdown[TimeClass::compute], 1, 0.1);
}

TEST(DualPipe, StagesHoldTwoPartsOfTheModel) {
  // Weights and gradients of a stage and its mirror; the optimizer's state of both is shared out between them where
  // ZeRO shards it. Activations of p + 1 microbatches where 1f1b's first stage has p.
  Setting setting = level_setting(8, 16);
  setting.model.tied_embeddings = false;  // a table that both ends share would be held once
  ParallelPlan plan = dual_plan(2, 4);
  plan.zero_stage = 1;
  ParallelPlan plain = plan;
  plain.schedule = ScheduleKind::one_f_one_b;
  Details dual, one;
  predict_mode(setting, plan, ExecutionMode::hierarchical, &dual);
  predict_mode(setting, plain, ExecutionMode::hierarchical, &one);
  ASSERT_EQ(dual.stage_memory.size(), 4U);
  for (std::size_t s = 0; s < 4; ++s) {
    const MemoryUse &use = dual.stage_memory[s], &here = one.stage_memory[s],
                    &there = one.stage_memory[3 - s];
    EXPECT_NEAR(use.weights.value(), (here.weights + there.weights).value(), 1) << s;
    EXPECT_NEAR(use.gradients.value(), (here.gradients + there.gradients).value(), 1) << s;
    EXPECT_NEAR(use.optimizer.value(), 0.5 * (here.optimizer + there.optimizer).value(), 1) << s;
  }
  const double first = one.stage_memory[1].activations.value(),
               dual_first = dual.stage_memory[1].activations.value();
  EXPECT_GT(dual_first, first);  // 5 of 4 microbatches against 3 on the second stage
  EXPECT_NEAR(dual_first / first, 5.0 / 3, 0.2);
}

TEST(DualPipe, GradientsAreAddedUpOverAStageAndItsMirror) {
  // A ring all-reduce of all that a rank holds of both its parts over D ranks of each stage: 2 (2 D - 1) / (2 D) of it
  // over a link. Under ZeRO-1 half of that time scatters gradients, and half as many bytes of weights come back.
  constexpr double kRate = 50e9;
  for (const std::int32_t data : {1, 2}) {
    for (const std::int32_t zero : {0, 1}) {
      if (data == 1 && zero == 1) continue;
      Setting setting = level_setting(4 * data, 16 * data);
      setting.system.fabric = test::crossbar(4 * data, kRate, 0);
      setting.system.stack.communication.algorithms = {Algorithm::ring};
      ParallelPlan plan = dual_plan(data, 4);
      plan.zero_stage = zero;
      Details details;
      const Prediction h = predict_mode(setting, plan, ExecutionMode::hierarchical, &details);
      const Prediction f = predict_mode(setting, plan, ExecutionMode::flattened);
      ASSERT_TRUE(h.status == Status::ok || h.status == Status::memory) << name_of(h.reason);
      // Gradients of four bytes, sent as such; all stages of the same blocks, the ends with the table, too.
      const double gradients = details.stage_memory[0].gradients.value();
      const double weights = details.stage_memory[0].weights.value();
      const double sweep = (2.0 * data - 1) / (2 * data) / kRate;
      const double expected = zero == 0 ? 2 * sweep * gradients : sweep * (gradients + weights);
      EXPECT_NEAR(h.breakdown[TimeClass::data_comm].value(), expected, 1e-6 * expected) << data << zero;
      EXPECT_NEAR(f.step_time / h.step_time, 1, 0.02) << data << zero;
      EXPECT_NEAR(h.breakdown.total() / h.step_time, 1, 1e-9);
    }
  }
}

TEST(DualPipe, WhatItCannotRunIsRefused) {
  const auto verdict = [](std::int32_t stages, std::int64_t batch, std::int32_t zero = 0) {
    ParallelPlan plan = dual_plan(2, stages);
    plan.zero_stage = zero;
    Setting setting = level_setting(2 * stages, batch);
    setting.model.layers = 12;
    return predict_mode(setting, plan, ExecutionMode::hierarchical).reason;
  };
  EXPECT_EQ(verdict(4, 16), Reason::none);
  EXPECT_EQ(verdict(4, 18), Reason::microbatches_by_directions);  // nine of them
  EXPECT_EQ(verdict(4, 12), Reason::microbatches_by_directions);  // six, fewer than eight
  EXPECT_EQ(verdict(3, 24), Reason::schedule);
  EXPECT_EQ(verdict(4, 16, 1), Reason::none);
  EXPECT_EQ(verdict(4, 16, 3), Reason::schedule);
}

TEST(DualPipe, ExchangesHideBehindTheOtherDirection) {
  Setting setting = exchange_setting(8, 32);
  ParallelPlan plan = dual_plan(2, 4);
  plan.expert = 2;
  double before = 0;
  for (const double overlap : {0.0, 0.5, 1.0}) {
    setting.system.stack.communication.expert_overlap = overlap;
    const Prediction h = predict_mode(setting, plan, ExecutionMode::hierarchical);
    const Prediction f = predict_mode(setting, plan, ExecutionMode::flattened);
    ASSERT_TRUE(h.status == Status::ok || h.status == Status::memory) << name_of(h.reason);
    const double shown = h.breakdown[TimeClass::expert_comm].value();
    EXPECT_GT(shown, 0) << overlap;  // exchanges of passes that run alone
    if (overlap > 0) {
      EXPECT_LT(shown, before);
    }
    before = shown;
    EXPECT_NEAR(f.step_time / h.step_time, 1, 0.03) << overlap;
    EXPECT_NEAR(h.breakdown.total() / h.step_time, 1, 1e-9);
    EXPECT_NEAR(f.breakdown.total() / f.step_time, 1, 1e-9);
  }
}

TEST(OverlappedExchanges, HideInPairsOfInterleavedPassesAndOfOneStage) {
  for (const std::int32_t stages : {1, 2}) {
    Setting setting = exchange_setting(2 * stages, 16);
    ParallelPlan plan = test::plan_of(1, 1, stages, 2);
    plan.expert = 2;
    if (stages > 1) {
      plan.schedule = ScheduleKind::interleaved;
      plan.virtual_stages = 2;
    }
    const Prediction plain = predict_mode(setting, plan, ExecutionMode::hierarchical);
    ASSERT_TRUE(plain.status == Status::ok || plain.status == Status::memory) << name_of(plain.reason);
    setting.system.stack.communication.expert_overlap = 1;
    const Prediction h = predict_mode(setting, plan, ExecutionMode::hierarchical);
    const Prediction f = predict_mode(setting, plan, ExecutionMode::flattened);
    EXPECT_LT(h.step_time, plain.step_time) << stages;
    EXPECT_LT(h.breakdown[TimeClass::expert_comm], 0.7 * plain.breakdown[TimeClass::expert_comm]);
    EXPECT_GT(h.memory.activations, plain.memory.activations);  // it holds one more microbatch
    EXPECT_NEAR(f.step_time / h.step_time, 1, 0.03) << stages;
    EXPECT_NEAR(f.breakdown.total() / f.step_time, 1, 1e-9);
    // If compute loses all that exchanges hide beside it, nothing is won.
    setting.system.stack.communication.expert_hidden = 0;
    const Prediction lost = predict_mode(setting, plan, ExecutionMode::hierarchical);
    EXPECT_GT(lost.step_time, h.step_time);
    EXPECT_NEAR(predict_mode(setting, plan, ExecutionMode::flattened).step_time / lost.step_time, 1, 0.03);
  }
}

TEST(UnevenPipelines, BothModesAgree) {
  // Seven layers on four stages, by the rule and as laid out; chunks of an interleaved schedule likewise.
  for (const char* const layout : {"", "Et|t*3|t|ttL", "Et*4|t|t|tL"}) {
    Setting setting = level_setting(4, 16);
    setting.model.layers = 7;
    setting.system.stack.partition = PartitionRule::uneven;
    setting.system.stack.pipeline_layout = layout;
    const ParallelPlan plan = test::plan_of(1, 1, 4, 1);
    const Prediction h = predict_mode(setting, plan, ExecutionMode::hierarchical);
    ASSERT_TRUE(h.status == Status::ok || h.status == Status::memory) << name_of(h.reason);
    const Prediction f = predict_mode(setting, plan, ExecutionMode::flattened);
    EXPECT_NEAR(f.step_time / h.step_time, 1, 1e-6) << layout;
  }
  for (const char* const layout : {"", "Et|tt|t|tt|t|L", "Ett|t|t|t|t|tL"}) {
    Setting setting = level_setting(3, 12);
    setting.model.layers = 7;
    setting.system.stack.partition = PartitionRule::uneven;
    setting.system.stack.pipeline_layout = layout;
    ParallelPlan plan = test::plan_of(1, 1, 3, 1);
    plan.schedule = ScheduleKind::interleaved;
    plan.virtual_stages = 2;
    const Prediction h = predict_mode(setting, plan, ExecutionMode::hierarchical);
    ASSERT_TRUE(h.status == Status::ok || h.status == Status::memory) << name_of(h.reason) << layout;
    const Prediction f = predict_mode(setting, plan, ExecutionMode::flattened);
    EXPECT_NEAR(f.step_time / h.step_time, 1, 1e-6) << layout;
  }
}

TEST(UnevenPipelines, TheFullestStageSetsThePace) {
  // Four layers where one would do: 16 microbatches through a stage of 4 of 7 layers.
  Setting setting = level_setting(4, 64);
  setting.model.layers = 7;
  setting.system.stack.pipeline_layout = "Ett|tt|tt|tL";
  const ParallelPlan plan = test::plan_of(1, 1, 4, 1);
  const Prediction even = predict_mode(setting, plan, ExecutionMode::hierarchical);
  setting.system.stack.pipeline_layout = "Et*4|t|t|tL";
  const Prediction uneven = predict_mode(setting, plan, ExecutionMode::hierarchical);
  EXPECT_NEAR(uneven.step_time / even.step_time, 2, 0.1);
  setting.system.stack.pipeline_layout = "Et*4|t|tL";
  EXPECT_EQ(predict_mode(setting, plan, ExecutionMode::hierarchical).reason, Reason::layout);
}

TEST(UnevenPipelines, FurtherTokensLieWhereTheLayoutSays) {
  Setting setting = exchange_setting(4, 16);
  setting.model.moe->mtp_layers = 1;
  setting.model.layers = 7;
  const ParallelPlan plan = test::plan_of(1, 1, 4, 1);
  const auto optimizer = [&](const char* layout) {
    setting.system.stack.pipeline_layout = layout;
    Details details;
    predict_mode(setting, plan, ExecutionMode::hierarchical, &details);
    std::vector<double> bytes;
    for (const MemoryUse& use : details.stage_memory) bytes.push_back(use.optimizer.value());
    return bytes;
  };
  const std::vector<double> last = optimizer("Ett|tt|ttt|mL"), before = optimizer("Ett|tt|tttm|L");
  ASSERT_EQ(last.size(), 4U);
  ASSERT_EQ(before.size(), 4U);
  EXPECT_EQ(last[0], before[0]);
  EXPECT_EQ(last[1], before[1]);
  EXPECT_GT(before[2], last[2]);
  // The module and its table move from the last stage to the one before it.
  EXPECT_NEAR(before[2] - last[2], last[3] - before[3], 1);
  for (const char* const layout : {"Ett|tt|ttt|mL", "Ett|tt|tttm|L", "Ett|tt|tt|tmL"}) {
    setting.system.stack.pipeline_layout = layout;
    const Prediction h = predict_mode(setting, plan, ExecutionMode::hierarchical);
    const Prediction f = predict_mode(setting, plan, ExecutionMode::flattened);
    EXPECT_NEAR(f.step_time / h.step_time, 1, 0.03) << layout;
  }
}

}  // namespace
}  // namespace shardscape
