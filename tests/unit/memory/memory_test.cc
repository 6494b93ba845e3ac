#include "engine/memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/settings.h"

namespace shardscape::memory {
namespace {

/// Memory of one training stage with chosen activation bytes.
struct Case {
  Setting setting;
  ParallelPlan plan;
  std::vector<std::int32_t> layers;
  ActivationBytes activations;
  schedule::PipelineShape pipeline;

  [[nodiscard]] MemoryInputs inputs() const {
    return {setting, plan, layers, stage_parameters(setting.model, plan.tensor), activations, pipeline};
  }
  [[nodiscard]] MemoryUse stage(std::int32_t s) const { return training_stage(inputs(), s); }
};

Case case_of(const ModelSpec& model, std::int32_t stages = 1, std::int32_t microbatches = 8) {
  Case c;
  c.setting.model = model;
  c.setting.system = {test::a100(), test::nodes(8, 1), test::bare_stack()};
  c.setting.workload = test::training(2048, 8);
  c.plan.pipeline = stages;
  c.layers.assign(static_cast<std::size_t>(stages), static_cast<std::int32_t>(model.layers / stages));
  c.pipeline = {ScheduleKind::one_f_one_b, stages, 1, microbatches};
  return c;
}

// Rajbhandari et al. 2020, with fp32 gradients: 2 bytes of weights, 4 of gradients, 4 + 8 of master copy and
// moments per parameter; stage 1 shards the last, 2 the gradients, 3 the weights, over dp * cp.
TEST(Static, ZeroStagesShardTheClosedForm) {
  Case c = case_of(test::llama2_7b());
  const double P = 6'738'415'616;
  c.plan.data = 4, c.plan.context = 2;
  const double w = 2 * P, g = 4 * P, o = 12 * P, n = 8;
  const double expected[4][3] = {{w, g, o}, {w, g, o / n}, {w, g / n, o / n}, {w / n, g / n, o / n}};
  for (std::int32_t zero = 0; zero < 4; ++zero) {
    c.plan.zero_stage = zero;
    const MemoryUse use = c.stage(0);
    EXPECT_DOUBLE_EQ(use.weights.value(), expected[zero][0]) << zero;
    EXPECT_DOUBLE_EQ(use.gradients.value(), expected[zero][1]) << zero;
    EXPECT_DOUBLE_EQ(use.optimizer.value(), expected[zero][2]) << zero;
  }
  c.plan.zero_stage = 2;
  c.setting.system.stack.zero2_gradients = Zero2Gradients::last_microbatch;
  EXPECT_DOUBLE_EQ(c.stage(0).gradients.value(), g);  // whole until the last microbatch
}

TEST(Static, StagesHoldTheWholeModelTogether) {
  for (const std::int32_t stages : {1, 2, 4, 8}) {
    for (const ModelSpec& model : {test::llama2_7b(), test::llama31_70b()}) {
      const Case c = case_of(model, stages);
      double weights = 0;
      for (std::int32_t s = 0; s < stages; ++s) weights += c.stage(s).weights.value();
      EXPECT_DOUBLE_EQ(weights, 2 * model.parameters()) << stages;
    }
  }
}

// A tied table is there once on one stage, and twice where the head has a stage of its own.
TEST(Static, TiedEmbeddings) {
  const ModelSpec model = test::gpt(8, 1024, 16);
  EXPECT_DOUBLE_EQ(case_of(model).stage(0).weights.value(), 2 * model.parameters());
  const Case c = case_of(model, 2);
  EXPECT_DOUBLE_EQ((c.stage(0).weights + c.stage(1).weights).value(),
                   2 * (model.parameters() + 51200.0 * 1024));
}

// Matrices and tables are cut over the tensor group, norm gains are not. Llama 2 7B on 4 ranks: a block's
// 4 x 4096^2 + 3 x 4096 x 11008 weights / 4 + 2 x 4096.
TEST(Static, TensorParallelCutsMatrices) {
  const StageParameters p = stage_parameters(test::llama2_7b(), 4);
  EXPECT_DOUBLE_EQ(p.block, (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) / 4 + 2 * 4096);
  EXPECT_DOUBLE_EQ(p.embedding, 32000.0 * 4096 / 4);
  // Llama 3.1 8B on 16 ranks: 8 KV heads of 128, one whole head per rank instead of a half.
  const StageParameters gqa = stage_parameters(test::llama31_8b(), 16);
  const double q_and_o = 2.0 * 4096 * 4096 / 16, kv = 2.0 * 4096 * 128, mlp = 3.0 * 4096 * 14336 / 16;
  EXPECT_DOUBLE_EQ(gqa.block, q_and_o + kv + mlp + 2 * 4096);
}

// 1f1b, 4 stages, 8 microbatches: stage s holds 4 - s microbatches of its 8 layers.
TEST(Activations, InFlightMicrobatchesTimesLayers) {
  Case c = case_of(test::llama2_7b(), 4);
  c.activations.block = Bytes(1e6);
  for (std::int32_t s = 0; s < 4; ++s) EXPECT_DOUBLE_EQ(c.stage(s).activations.value(), (4 - s) * 8 * 1e6);
  c.setting.system.stack.memory.fragmentation = 1.25;
  EXPECT_DOUBLE_EQ(c.stage(0).activations.value(), 1.25 * 4 * 8 * 1e6);
}

// Korthikanti et al. 2022, section 4.2.3: interleaving holds 1 + (p - 1) / (p v) times the p microbatches of
// 1f1b on the first stage.
TEST(Activations, InterleavingHoldsMore) {
  Case c = case_of(test::llama2_7b(), 4, 16);
  c.activations.block = Bytes(1e6);
  c.pipeline = {ScheduleKind::interleaved, 4, 2, 16};
  EXPECT_DOUBLE_EQ(c.stage(0).activations.value(), 4 * 8 * 1e6 * (1 + 3.0 / (4 * 2)));
}

// The backward of the last stage follows its forward at once under 1f1b; gpipe computes every microbatch's
// head before the first backward.
TEST(Activations, TheHeadHoldsOneMicrobatchOrAllOfThem) {
  Case c = case_of(test::llama2_7b(), 4);
  c.activations.head = Bytes(1e9);
  EXPECT_DOUBLE_EQ(c.stage(3).activations.value(), 1e9);
  EXPECT_DOUBLE_EQ(c.stage(0).activations.value(), 0);
  c.pipeline.kind = ScheduleKind::gpipe;
  EXPECT_DOUBLE_EQ(c.stage(3).activations.value(), 8e9);
  // Interleaved with as many microbatches as stages runs all forwards first, too.
  c.pipeline = {ScheduleKind::interleaved, 4, 2, 4};
  EXPECT_DOUBLE_EQ(c.stage(3).activations.value(), 4e9);
  c.pipeline.microbatches = 8;
  EXPECT_DOUBLE_EQ(c.stage(3).activations.value(), 1e9);
}

// Logits live on the last stage; what their backward needs waits for it like the head's input.
TEST(Logits, WaitForTheirBackward) {
  Case c = case_of(test::llama2_7b(), 4);
  c.activations.logits = Bytes(8e9);
  c.activations.waiting_logits = Bytes(4e9);
  EXPECT_EQ(c.stage(0).logits.value(), 0);
  EXPECT_DOUBLE_EQ(c.stage(3).logits.value(), 8e9);
  c.pipeline.kind = ScheduleKind::gpipe;
  EXPECT_DOUBLE_EQ(c.stage(3).logits.value(), 8e9 + 7 * 4e9);
}

TEST(Activations, OneBlockAtATimeIsRecomputed) {
  Case c = case_of(test::llama2_7b(), 2);
  c.activations.block_working = Bytes(5e8);
  EXPECT_DOUBLE_EQ(c.stage(0).activations.value(), 5e8);
}

TEST(Buffers, BucketBoundaryAndGatheredBlocks) {
  Case c = case_of(test::llama2_7b(), 2);
  c.setting.system.stack.communication.bucket = Bytes(25e6);
  c.activations.boundary = Bytes(3e6);
  EXPECT_DOUBLE_EQ(c.stage(0).buffers.value(), 2 * 3e6);
  c.plan.data = 2;
  EXPECT_DOUBLE_EQ(c.stage(0).buffers.value(), 25e6 + 2 * 3e6);
  c.plan.zero_stage = 3;
  const double block = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008 + 2 * 4096;
  EXPECT_DOUBLE_EQ(c.stage(0).buffers.value(), 25e6 + 2 * 3e6 + 2 * 2 * block);
}

// 2 (K and V) x 2 bytes x 80 layers x 8 KV heads x 128 x tokens x sequences over the model; a tensor rank
// holds its heads, a stage its layers, a context rank its tokens.
TEST(Inference, KvCacheIsTheClosedForm) {
  Case c = case_of(test::llama31_70b(), 4);
  c.plan.tensor = 4, c.plan.context = 2;
  const double whole = 2.0 * 2 * 80 * 8 * 128 * 1200 * 16;
  EXPECT_DOUBLE_EQ(inference_stage(c.inputs(), 1, 16, 1200).kv_cache.value(), whole / 4 / 4 / 2);
  c.plan.tensor = 16;  // two ranks hold the same head
  EXPECT_DOUBLE_EQ(inference_stage(c.inputs(), 1, 16, 1200).kv_cache.value(), 2 * whole / 16 / 4 / 2);
}

TEST(Inference, KeepsWeightsOnly) {
  const Case c = case_of(test::llama2_7b());
  const MemoryUse use = inference_stage(c.inputs(), 0, 1, 1);
  EXPECT_DOUBLE_EQ(use.weights.value(), 2.0 * 6'738'415'616);
  EXPECT_EQ((use.gradients + use.optimizer).value(), 0);
}

}  // namespace
}  // namespace shardscape::memory
