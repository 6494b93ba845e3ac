// Plans that fold experts into the ranks of a stage: what ranks send, hold and compute, against closed forms, and
// the two modes against each other.
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "engine/model/block_kinds.h"
#include "engine/simulate.h"
#include "engine/step/layers/training_step.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/outcome_of_plan.h"

namespace shardscape {
namespace {

constexpr double kWire = 100e9;
constexpr double kBatchTokens = 1024, kExpertsHidden = 1024, kExpertsLayers = 4, kExpertsInLayer = 8,
                 kExpertWidth = 512;
constexpr double kExpertParameters = kExpertsLayers * kExpertsInLayer * 3 * kExpertsHidden * kExpertWidth;

Setting expert_setting(std::int64_t ranks) {
  Setting s;
  s.model = test::llama(4, 1024, 16, 4, 512, 32000);
  s.model.moe = MixtureOfExperts{.experts = 8, .top_k = 2, .expert_ffn_hidden = 512};
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, kWire);
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, 16);
  return s;
}

ParallelPlan expert_plan(std::int32_t data, std::int32_t expert, std::int32_t expert_tensor = 1) {
  ParallelPlan plan = test::plan_of(1, 1, 1, data);
  plan.expert = expert;
  plan.expert_tensor = expert_tensor;
  return plan;
}

TEST(ExpertPlans, DispatchAndCombineSendEveryCopyOfEveryToken) {
  // 16 sequences over 8 replicas are two microbatches. In each layer both ways of forward and both of backward
  // send two copies of 1024 tokens in bf16, of which a rank keeps the quarter that its own experts get.
  const Setting setting = expert_setting(8);
  const test::PlanOutcome outcome = test::outcome_of(setting, expert_plan(8, 4));
  const double copies = 2 * kBatchTokens * kExpertsHidden * 2;
  EXPECT_DOUBLE_EQ(outcome.bytes[ParallelGroup::expert].value(), 2 * kExpertsLayers * 4 * copies * 3 / 4);
  // Nothing hides them, and a crossbar without latency takes bytes / bandwidth.
  EXPECT_NEAR(outcome.prediction.breakdown[TimeClass::expert_comm].value(),
              outcome.bytes[ParallelGroup::expert].value() / kWire, 1e-12);
  EXPECT_EQ(test::outcome_of(setting, expert_plan(8, 1)).bytes[ParallelGroup::expert], Bytes(0));
}

TEST(ExpertPlans, RanksThatSplitAnExpertGatherTheTokensOfAll) {
  // Twice as many copies on each rank after the gather; it sends the half that the other has not, and
  // backward likewise, twice each.
  const test::PlanOutcome outcome = test::outcome_of(expert_setting(8), expert_plan(8, 2, 2));
  const double copies = 2 * kBatchTokens * kExpertsHidden * 2;
  EXPECT_DOUBLE_EQ(outcome.bytes[ParallelGroup::expert].value(), 2 * kExpertsLayers * 4 * copies / 2);
  EXPECT_DOUBLE_EQ(outcome.bytes[ParallelGroup::expert_tensor].value(),
                   2 * kExpertsLayers * 4 * 2 * copies / 2);
}

TEST(ExpertPlans, GradientsOfExpertsAreReducedOverTheirOwnCopies) {
  // All-reduce: 2 (n - 1) / n of the bytes, over 8 ranks of all else and over 2 of a quarter of the experts.
  const Setting setting = expert_setting(8);
  const double each = setting.system.stack.state.gradient_comm_bytes;
  const double others = setting.model.parameters() - kExpertParameters;
  const test::PlanOutcome outcome = test::outcome_of(setting, expert_plan(8, 4));
  EXPECT_NEAR(outcome.bytes[ParallelGroup::data_shard].value(), 2 * 7 / 8.0 * each * others, 1);
  EXPECT_NEAR(outcome.bytes[ParallelGroup::expert_data].value(), 2 * each * kExpertParameters / 4 / 2, 1);
}

TEST(ExpertPlans, EveryStateOfAnExpertIsShardedOverItsCopies) {
  const Setting setting = expert_setting(16);
  const StackProfile::State& state = setting.system.stack.state;
  const double others = setting.model.parameters() - kExpertParameters;
  for (const std::int32_t zero : {0, 1, 2, 3}) {
    ParallelPlan plan = expert_plan(16, 4);  // 4 copies of each expert, 16 of all else
    plan.zero_stage = zero;
    const MemoryUse use = test::outcome_of(setting, plan).prediction.memory;
    const auto held = [&](bool sharded) {
      return others / (sharded ? 16 : 1) + kExpertParameters / 4 / (sharded ? 4 : 1);
    };
    EXPECT_NEAR(use.weights.value(), 2 * held(zero >= 3), 1) << zero;
    EXPECT_NEAR(use.optimizer.value(), (state.master_bytes + state.moment_bytes) * held(zero >= 1), 1)
        << zero;
  }
}

TEST(ExpertPlans, FoldingMovesNoFlop) {
  // The products of the experts of all ranks together are the same however the experts lie.
  const Setting setting = expert_setting(8);
  const auto flops = [&](const ParallelPlan& plan) {
    double sum = 0;
    const auto operators =
        model::block_operators(setting, 0, model::layer_key(plan, 1), 1024, model::Mode::training);
    for (const model::Operator& op : operators)
      if (op.name == "expert_in" || op.name == "expert_out") sum += op.gemm.flops().value();
    return sum;
  };
  const double whole = flops(expert_plan(8, 1));
  EXPECT_DOUBLE_EQ(whole, 2 * 2 * kBatchTokens * 3 * kExpertsHidden * kExpertWidth);
  for (const auto& [expert, split] : {std::pair{2, 1}, {8, 1}, {4, 2}, {1, 4}, {2, 4}})
    EXPECT_DOUBLE_EQ(flops(expert_plan(8, expert, split)), whole) << expert << " x " << split;
}

TEST(ExpertPlans, AGroupWithTheSameTokensSendsNone) {
  // A server's tensor group deals its experts: their sum of partial outputs brings all together.
  Setting setting = expert_setting(4);
  setting.workload = test::inference(512, 32, 4);
  ParallelPlan plan = test::plan_of(4, 1, 1, 1);
  plan.expert = 4;
  const test::PlanOutcome dealt = test::outcome_of(setting, plan);
  plan.expert = 1;
  const test::PlanOutcome split = test::outcome_of(setting, plan);
  EXPECT_EQ(dealt.prediction.breakdown[TimeClass::expert_comm], Seconds(0));
  EXPECT_DOUBLE_EQ(dealt.prediction.breakdown[TimeClass::tensor_comm].value(),
                   split.prediction.breakdown[TimeClass::tensor_comm].value());
  EXPECT_DOUBLE_EQ(dealt.prediction.memory.weights.value(), split.prediction.memory.weights.value());
}

TEST(ExpertPlans, BothModesAgree) {
  Setting setting = expert_setting(8);
  for (const auto& [tensor, context, pipeline, data] :
       {std::array{1, 1, 1, 8}, {2, 1, 1, 4}, {1, 2, 2, 2}, {2, 2, 1, 2}, {1, 1, 2, 4}}) {
    for (const auto& [expert, split] : {std::pair{2, 1}, {4, 1}, {2, 2}, {1, 2}}) {
      for (const std::int32_t zero : {0, 1, 3}) {
        ParallelPlan plan = test::plan_of(tensor, context, pipeline, data);
        plan.sequence_parallel = tensor > 1;
        plan.expert = expert;
        plan.expert_tensor = split;
        plan.zero_stage = zero;
        SCOPED_TRACE(test::describe(0, plan) + testing::PrintToString(std::pair(expert, split)));
        const double fast = test::outcome_of(setting, plan).prediction.step_time.value();
        const double slow =
            test::outcome_of(setting, plan, ExecutionMode::flattened).prediction.step_time.value();
        EXPECT_NEAR(fast / slow, 1, 0.01);
      }
    }
  }
}

}  // namespace
}  // namespace shardscape
