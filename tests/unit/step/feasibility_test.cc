// Is every rule about plans that do not divide, or are not supported, found by the reason that it has, and in the right
// order?
#include "engine/step/feasibility.h"

#include <gtest/gtest.h>

#include "tests/support/engine_fixture.h"

namespace shardscape::step {
namespace {

class FeasibilityTest : public testing::Test {
 protected:
  FeasibilityTest() {
    setting.model = test::llama(8, 768, 12, 4, 3072, 32000);
    setting.system.device = test::round_device();
    setting.system.stack = test::plain_stack();
    setting.workload = test::training(1024, 32);
  }
  void expect(const ParallelPlan& plan, Status status, Reason reason) {
    const Verdict verdict = check_plan(setting, plan);
    EXPECT_EQ(name_of(verdict.status), name_of(status));
    EXPECT_EQ(name_of(verdict.reason), name_of(reason));
  }
  Setting setting;
};

TEST_F(FeasibilityTest, Ok) { expect(test::plan_of(4, 2, 2, 4), Status::ok, Reason::none); }

TEST_F(FeasibilityTest, HeadsByTensor) {
  expect(test::plan_of(8, 1, 1, 1), Status::indivisible, Reason::heads_by_tensor);
}

TEST_F(FeasibilityTest, KvHeadsByTensor) {
  // 12 heads, 4 KV heads: 2 and 4 divide them, 12 replicates them three times, 3 and 6 do neither.
  for (const int tp : {1, 2, 4, 12}) expect(test::plan_of(tp, 1, 1, 1), Status::ok, Reason::none);
  for (const int tp : {3, 6})
    expect(test::plan_of(tp, 1, 1, 1), Status::indivisible, Reason::kv_heads_by_tensor);
}

TEST_F(FeasibilityTest, FfnByTensor) {
  setting.model.ffn_hidden = 3070;
  expect(test::plan_of(4, 1, 1, 1), Status::indivisible, Reason::ffn_by_tensor);
}

TEST_F(FeasibilityTest, ExpertsByRanks) {
  ParallelPlan plan = test::plan_of(1, 1, 1, 16);
  plan.expert = 2;
  expect(plan, Status::indivisible, Reason::no_experts);
  setting.model.moe = MixtureOfExperts{.experts = 12, .top_k = 2, .expert_ffn_hidden = 768};
  expect(plan, Status::ok, Reason::none);
  plan.expert = 8;
  expect(plan, Status::indivisible, Reason::experts_by_ranks);
  plan.expert = 3;
  expect(plan, Status::indivisible, Reason::ranks_by_experts);
  plan.expert = 4, plan.expert_tensor = 4;
  expect(plan, Status::ok, Reason::none);
  plan.expert_tensor = 5;
  expect(plan, Status::indivisible, Reason::expert_width_by_ranks);
  // Ranks of a tensor group that hold the same tokens would all send them.
  plan = test::plan_of(4, 1, 1, 4);
  plan.expert = 4, plan.expert_tensor = 2;
  expect(plan, Status::unsupported, Reason::repeated_tokens);
  plan.sequence_parallel = true;
  expect(plan, Status::ok, Reason::none);
}

TEST_F(FeasibilityTest, TheGroupThatSplitsAnExpertDividesItsWidth) {
  // 770 = 2 * 5 * 7 * 11: not a width for the four ranks of a tensor group, but for groups of two or one of its own.
  setting.model.moe = MixtureOfExperts{.experts = 12, .top_k = 2, .expert_ffn_hidden = 770};
  ParallelPlan plan = test::plan_of(4, 1, 1, 4);
  plan.sequence_parallel = true;
  expect(plan, Status::indivisible, Reason::ffn_by_tensor);
  plan.expert = 4;
  for (const int etp : {1, 2}) {
    plan.expert_tensor = etp;
    expect(plan, Status::ok, Reason::none);
  }
  plan.expert_tensor = 4;
  expect(plan, Status::indivisible, Reason::expert_width_by_ranks);
  // Shared experts lie beside the attention, on the tensor group.
  plan.expert_tensor = 2;
  setting.model.moe->shared_experts = 1, setting.model.moe->shared_ffn_hidden = 770;
  expect(plan, Status::indivisible, Reason::ffn_by_tensor);
  // A pool that prefills has no groups of experts: its tensor group splits each.
  setting.model.moe->shared_experts = 0, setting.model.moe->shared_ffn_hidden = 0;
  setting.workload = test::inference(512, 64, 8);
  plan = test::plan_of(4, 1, 1, 1);
  plan.expert = 4;
  expect(plan, Status::ok, Reason::none);
  plan.prefill = {.tensor = 2, .pipeline = 1, .data = 1};
  expect(plan, Status::ok, Reason::none);
  plan.prefill.tensor = 4;
  expect(plan, Status::indivisible, Reason::ffn_by_tensor);
}

TEST_F(FeasibilityTest, ServersHaveTheirExpertsInTheTensorGroup) {
  setting.model.moe = MixtureOfExperts{.experts = 12, .top_k = 2, .expert_ffn_hidden = 768};
  setting.workload = test::inference(512, 64, 8);
  ParallelPlan plan = test::plan_of(4, 1, 1, 2);
  plan.expert = 4;
  expect(plan, Status::ok, Reason::none);
  plan.expert = 2;
  expect(plan, Status::indivisible, Reason::ranks_by_experts);
  plan.expert_tensor = 2;
  expect(plan, Status::ok, Reason::none);
  plan.order = {PlanAxis::data, PlanAxis::tensor, PlanAxis::context, PlanAxis::pipeline};
  expect(plan, Status::indivisible, Reason::ranks_by_experts);
}

TEST_F(FeasibilityTest, SequenceByContext) {
  // 1024 = 2 * 512: a group of 512 has two tokens per rank; 3 or 1024 do not split into two pieces per rank.
  expect(test::plan_of(1, 512, 1, 1), Status::ok, Reason::none);
  expect(test::plan_of(1, 3, 1, 1), Status::indivisible, Reason::sequence_by_context);
  expect(test::plan_of(1, 1024, 1, 1), Status::indivisible, Reason::sequence_by_context);
  // Sequence parallelism splits the 2 tokens of a rank over the tensor group.
  ParallelPlan plan = test::plan_of(4, 512, 1, 1);
  expect(plan, Status::ok, Reason::none);
  plan.sequence_parallel = true;
  expect(plan, Status::indivisible, Reason::sequence_by_context);
}

TEST_F(FeasibilityTest, LayersByPipeline) {
  expect(test::plan_of(1, 1, 3, 1), Status::indivisible, Reason::layers_by_pipeline);
  expect(test::plan_of(1, 1, 9, 1), Status::indivisible, Reason::fewer_layers_than_stages);
  setting.system.stack.partition = PartitionRule::balanced;
  expect(test::plan_of(1, 1, 3, 1), Status::ok, Reason::none);
  expect(test::plan_of(1, 1, 9, 1), Status::ok, Reason::none);  // late stages hold the head or nothing
  setting.workload = test::training(1024, 33);
  ParallelPlan plan = test::plan_of(1, 1, 3, 1);
  plan.schedule = ScheduleKind::interleaved;
  plan.virtual_stages = 3;  // 9 chunks for 8 layers, the embedding and the head
  expect(plan, Status::ok, Reason::none);
  plan.virtual_stages = 4;
  expect(plan, Status::indivisible, Reason::fewer_layers_than_stages);
  setting.system.stack.partition = PartitionRule::uniform;
  plan.virtual_stages = 2;
  expect(plan, Status::indivisible, Reason::layers_by_pipeline);
}

TEST_F(FeasibilityTest, EmbeddingAndLossMayCountAsLayers) {
  setting.system.stack.partition = PartitionRule::with_ends;
  expect(test::plan_of(1, 1, 4, 1), Status::ok, Reason::none);   // 8 layers
  expect(test::plan_of(1, 1, 5, 1), Status::ok, Reason::none);   // 8 + 2
  expect(test::plan_of(1, 1, 10, 1), Status::ok, Reason::none);  // the ends alone on their stages
  expect(test::plan_of(1, 1, 3, 1), Status::indivisible, Reason::layers_by_pipeline);
  expect(test::plan_of(1, 1, 11, 1), Status::indivisible, Reason::fewer_layers_than_stages);
}

TEST_F(FeasibilityTest, BatchByData) {
  ParallelPlan plan = test::plan_of(1, 1, 1, 8);
  plan.microbatch = 4;
  expect(plan, Status::ok, Reason::none);
  plan.microbatch = 8;  // 64 samples at least
  expect(plan, Status::indivisible, Reason::batch_by_data);
  expect(test::plan_of(1, 1, 1, 3), Status::indivisible, Reason::batch_by_data);
}

TEST_F(FeasibilityTest, MicrobatchesByStages) {
  ParallelPlan plan = test::plan_of(1, 1, 4, 16);  // 2 microbatches on 4 stages
  expect(plan, Status::ok, Reason::none);
  plan.schedule = ScheduleKind::interleaved;
  plan.virtual_stages = 2;
  expect(plan, Status::indivisible, Reason::microbatches_by_stages);
}

TEST_F(FeasibilityTest, RequestsByData) {
  setting.workload = test::inference(1000, 10, 6);
  expect(test::plan_of(1, 1, 1, 3), Status::ok, Reason::none);
  expect(test::plan_of(1, 1, 1, 4), Status::indivisible, Reason::requests_by_data);
}

TEST_F(FeasibilityTest, Precision) {
  setting.workload.precision = PolicyName::fp8;
  expect(test::plan_of(1, 1, 1, 1), Status::unsupported, Reason::precision);
  auto& units = setting.system.device.sm.tensor_flops_per_clock;
  units[static_cast<std::size_t>(Precision::fp8)] = 2048;
  expect(test::plan_of(1, 1, 1, 1), Status::ok, Reason::none);
  // Attention and the head are bf16 beside products of fp8.
  units[static_cast<std::size_t>(Precision::bf16)] = 0;
  expect(test::plan_of(1, 1, 1, 1), Status::unsupported, Reason::precision);
}

TEST_F(FeasibilityTest, Schedule) {
  ParallelPlan plan = test::plan_of(1, 1, 2, 1);
  plan.schedule = ScheduleKind::zero_bubble;
  expect(plan, Status::ok, Reason::none);
  plan.virtual_stages = 2;
  expect(plan, Status::unsupported, Reason::schedule);
}

TEST_F(FeasibilityTest, IndivisibleComesBeforeUnsupported) {
  setting.workload.precision = PolicyName::fp8;
  expect(test::plan_of(8, 1, 1, 1), Status::indivisible, Reason::heads_by_tensor);
}

// Two passes of each microbatch through each stage, or chunk of one.
TEST_F(FeasibilityTest, StepsThatAreWalkedThroughHaveAsManyPassesAsTheLimitSays) {
  ParallelPlan plan = test::plan_of(1, 1, 4, 1);
  setting.workload.global_batch = kMostPasses / 8;
  EXPECT_FALSE(too_long(setting, plan, true));
  ++setting.workload.global_batch;
  EXPECT_TRUE(too_long(setting, plan, true));
  EXPECT_FALSE(too_long(setting, plan, false));  // a closed form knows all microbatches at once
  plan.schedule = ScheduleKind::dualpipe;
  EXPECT_TRUE(too_long(setting, plan, false));
  plan.microbatch = 2;
  EXPECT_FALSE(too_long(setting, plan, false));
}

TEST_F(FeasibilityTest, ServersReadPromptsInAsManyIterationsAsTheLimitSays) {
  setting.workload = test::inference(1, 1, 1);
  setting.system.stack.serving.scheduler = ServingPolicy::chunked;
  setting.system.stack.serving.token_budget = 1024;
  setting.workload.prompt_tokens = 4 * 1024;
  setting.workload.concurrency = kMostIterations / 4;
  EXPECT_FALSE(too_long(setting, test::plan_of(1, 1, 1, 1), false));
  ++setting.workload.prompt_tokens;  // a fifth piece
  EXPECT_TRUE(too_long(setting, test::plan_of(1, 1, 1, 1), false));
  EXPECT_FALSE(too_long(setting, test::plan_of(1, 1, 1, 2), false));
}

}  // namespace
}  // namespace shardscape::step
