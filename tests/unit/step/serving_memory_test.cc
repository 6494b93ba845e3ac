// Compares the memory of a server's largest iterations with sums written out by hand.
#include "engine/step/serving/serving_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::step {
namespace {

// Sizes of the model below, in bf16.
constexpr double kHidden = 1024, kHeads = 16, kKvHeads = 4, kHeadDim = 64, kFfn = 3072;
constexpr double kVocabulary = 32000;

Setting server(AttentionKernel attention, std::int64_t prompt, std::int64_t output,
               std::int64_t concurrency) {
  Setting s;
  s.model = test::llama(8, 1024, 16, 4, 3072, 32000);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(8);
  s.system.stack = test::plain_stack();
  s.system.stack.attention = attention;
  s.workload = test::inference(prompt, output, concurrency);
  return s;
}

/// Everything but the core, of one token: the inputs of both norms and of the QKV product; Q, K, V; the
/// inputs of the output projection and of the MLP, which writes gate and up side by side; the input of its
/// last product. A rank holds a KV head at least.
double token_bytes(double tensor) {
  const double qkv = (kHeads / tensor + 2 * std::max(1.0, kKvHeads / tensor)) * kHeadDim;
  return 2 * (4 * kHidden + qkv + kHeads * kHeadDim / tensor + 2 * kFfn / tensor + kFfn / tensor);
}
/// Log-sum-exp of each row of scores, fp32, or each score.
double flash_core(double tensor, double tokens) { return 4 * kHeads / tensor * tokens; }
double naive_core(double tensor, double pairs) { return 2 * kHeads / tensor * pairs; }

MemoryUse memory_of(const Setting& setting, const ParallelPlan& plan) {
  SimulateOptions options;
  options.time_infeasible = true;
  return Simulator(setting, options).run(plan).memory;
}

TEST(ServingMemory, PromptsMeetTheirOwnTokensOnly) {
  // One token comes out of each prompt and nothing is decoded: 16 prompts of 512 in a budget of 8192 tokens
  // have 16 x 512^2 scores per head, not 8192^2.
  const Setting naive = server(AttentionKernel::naive, 512, 1, 64);
  const ParallelPlan plan = test::plan_of(2, 1, 1, 4);  // 16 requests of each replica
  EXPECT_DOUBLE_EQ(memory_of(naive, plan).activations.value(),
                   8192 * token_bytes(2) + naive_core(2, 16 * 512.0 * 512));
  const Setting flash = server(AttentionKernel::flash, 512, 1, 64);
  EXPECT_DOUBLE_EQ(memory_of(flash, plan).activations.value(), 8192 * token_bytes(2) + flash_core(2, 8192));
}

TEST(ServingMemory, PiecesMeetTheWholePrompt) {
  // A budget of 2048 reads the last piece of a prompt of 6000: 2048 x 6000 scores.
  Setting setting = server(AttentionKernel::naive, 6000, 1, 8);
  setting.system.stack.serving.token_budget = 2048;
  EXPECT_DOUBLE_EQ(memory_of(setting, test::plan_of(1, 1, 1, 8)).activations.value(),
                   2048 * token_bytes(1) + naive_core(1, 2048 * 6000.0));
  // Context ranks hold a quarter of the queries each.
  EXPECT_DOUBLE_EQ(memory_of(setting, test::plan_of(1, 4, 1, 2)).activations.value(),
                   (2048 * token_bytes(1) + naive_core(1, 2048 * 6000.0)) / 4);
}

TEST(ServingMemory, DecodingSequencesMeetWhatTheyHave) {
  // 32 requests of 10 + 50000 tokens: no prompts that others read beside them come near the scores of all 32
  // at their last token, 32 x 50009.
  const Setting setting = server(AttentionKernel::naive, 10, 50000, 32);
  EXPECT_DOUBLE_EQ(memory_of(setting, test::plan_of(8, 1, 1, 1)).activations.value(),
                   32 * token_bytes(8) + naive_core(8, 32 * 50009.0));
}

TEST(ServingMemory, DecodersBesideAFullBudgetCountMost) {
  // 8 requests of 1000 + 500 tokens, a budget of 2048. With d decoding at 1499 tokens and the rest reading,
  // 2048 - d tokens of prompts fit as long as (8 - d) 1000 >= 2048 - d: d <= 5. Pairs: 2043 x 1000 + 5 x 1499
  // at d = 5, 2000 x 1000 + 6 x 1499 at 6.
  Setting setting = server(AttentionKernel::naive, 1000, 500, 8);
  setting.system.stack.serving.token_budget = 2048;
  const ParallelPlan plan = test::plan_of(8, 1, 1, 1);
  EXPECT_DOUBLE_EQ(memory_of(setting, plan).activations.value(),
                   2048 * token_bytes(8) + naive_core(8, 2043 * 1000.0 + 5 * 1499.0));
  // Every other split of the work needs less: brute force over how many decode.
  double most = 0;
  for (std::int64_t d = 0; d <= 8; ++d) {
    const std::int64_t read = std::min<std::int64_t>(2048 - d, (8 - d) * 1000);
    const auto tokens = static_cast<double>(read + d);
    most = std::max(most, tokens * token_bytes(8) + naive_core(8, static_cast<double>(read) * 1000 +
                                                                      static_cast<double>(d) * 1499));
  }
  EXPECT_DOUBLE_EQ(memory_of(setting, plan).activations.value(), most);
}

TEST(ServingMemory, WholePromptsAreReadBeforeAnyDecodes) {
  // The first scheduler of vLLM: 3 whole prompts of 600 in a budget of 2048, nobody decodes beside them.
  Setting setting = server(AttentionKernel::naive, 600, 100, 64);
  setting.system.stack.serving.scheduler = ServingPolicy::prefill_priority;
  setting.system.stack.serving.token_budget = 2048;
  EXPECT_DOUBLE_EQ(memory_of(setting, test::plan_of(8, 1, 1, 1)).activations.value(),
                   1800 * token_bytes(8) + naive_core(8, 3 * 600.0 * 600));
  // One that is longer than the budget is read whole.
  setting.workload = test::inference(3000, 1, 64);
  EXPECT_DOUBLE_EQ(memory_of(setting, test::plan_of(8, 1, 1, 1)).activations.value(),
                   3000 * token_bytes(8) + naive_core(8, 3000.0 * 3000));
}

TEST(ServingMemory, EverySequenceHasARowOfLogits) {
  for (const std::int64_t concurrency : {1, 64, 256}) {
    const Setting setting = server(AttentionKernel::flash, 100, 100, concurrency);
    EXPECT_DOUBLE_EQ(memory_of(setting, test::plan_of(8, 1, 1, 1)).logits.value(),
                     4 * static_cast<double>(concurrency) * kVocabulary / 8);
  }
  // No more than the stack's largest batch; of two stages' groups, half of the requests each.
  Setting setting = server(AttentionKernel::flash, 100, 100, 4096);
  EXPECT_DOUBLE_EQ(memory_of(setting, test::plan_of(8, 1, 1, 1)).logits.value(), 4 * 256 * kVocabulary / 8);
  setting.workload.concurrency = 100;
  Setting half = setting;
  half.system.fabric = test::crossbar(2);
  Details details;
  SimulateOptions options;
  options.time_infeasible = true;
  (void)Simulator(half, options).run(test::plan_of(1, 1, 2, 1), {}, &details);
  ASSERT_EQ(details.stage_memory.size(), 2U);
  EXPECT_EQ(details.stage_memory[0].logits.value(), 0);
  EXPECT_DOUBLE_EQ(details.stage_memory[1].logits.value(), 4 * 50 * kVocabulary);
}

TEST(ServingMemory, PoolsHoldWhatTheyAreFor) {
  // 4 ranks read prompts, 4 decode; 64 requests of 512 + 100 tokens. The first pool's iteration holds 16
  // whole prompts, of which each gives a token; the second one's 64 sequences of at most 611 tokens.
  const Setting setting = server(AttentionKernel::naive, 512, 100, 64);
  ParallelPlan plan = test::plan_of(4, 1, 1, 1);
  plan.prefill = {4, 1, 1};
  Details details;
  SimulateOptions options;
  options.time_infeasible = true;
  (void)Simulator(setting, options).run(plan, {}, &details);
  ASSERT_EQ(details.stage_memory.size(), 1U);
  ASSERT_EQ(details.prefill.stage_memory.size(), 1U);
  const MemoryUse &decode = details.stage_memory[0], &prefill = details.prefill.stage_memory[0];
  EXPECT_DOUBLE_EQ(prefill.activations.value(), 8192 * token_bytes(4) + naive_core(4, 8192 * 512.0));
  EXPECT_DOUBLE_EQ(prefill.logits.value(), 4 * 16 * kVocabulary / 4);
  EXPECT_DOUBLE_EQ(decode.activations.value(), 64 * token_bytes(4) + naive_core(4, 64 * 611.0));
  EXPECT_DOUBLE_EQ(decode.logits.value(), 4 * 64 * kVocabulary / 4);
}

}  // namespace
}  // namespace shardscape::step
