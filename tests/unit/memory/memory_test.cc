// Does every kind of bytes on a device agree with sums written out by hand: parameters, ZeRO, schedules, caches and
// buffers?
#include "engine/memory/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "tests/support/engine_fixture.h"

namespace shardscape::memory {
namespace {

/// Activations of round sizes, so that every term of a sum can be told apart.
ActivationBytes marked_activations() {
  ActivationBytes a;
  a.block[0] = {Bytes(1e6), Bytes(1e4), Bytes(0)};
  a.embedding = Bytes(1e2);
  a.head = Bytes(10);
  a.logits = Bytes(7e9);
  a.logits_saved = Bytes(2e9);
  a.boundary = Bytes(3e8);
  return a;
}

constexpr PrecisionPolicy kBf16 = policy_of(PolicyName::bf16, Phase::training);

class MemoryTest : public testing::Test {
 protected:
  MemoryTest() {
    setting.model = test::llama(8, 1024, 16, 4, 4096, 32000);
    setting.system.device = test::round_device();
    setting.system.stack = test::plain_stack();
    setting.workload = test::training(2048, 64);
  }

  MemoryInputs inputs(std::int32_t microbatches, ActivationBytes activations = {}) {
    layers.assign(static_cast<std::size_t>(plan.pipeline),
                  {0, static_cast<std::int32_t>(setting.model.layers) / plan.pipeline});
    return {setting,     plan,
            layers,      model::stage_parameters(setting.model, setting.workload.policy(), plan),
            activations, {plan.schedule, plan.pipeline, plan.virtual_stages, microbatches}};
  }

  /// Parameters of the model as its shapes give them: Q and O h^2, K and V h^2/4 each, three h x 4 h, two
  /// norms.
  static constexpr double kHidden = 1024;
  static constexpr double kBlock = kHidden * kHidden * (2 + 2 * 0.25 + 3 * 4) + 2 * kHidden;
  static constexpr double kTable = 32000 * kHidden;
  static constexpr double kModel = 8 * kBlock + 2 * kTable + kHidden;

  Setting setting;
  ParallelPlan plan;
  std::vector<model::StageLayers> layers;
};

TEST_F(MemoryTest, ParametersOfTheWholeModel) {
  EXPECT_DOUBLE_EQ(setting.model.parameters(), kModel);
  EXPECT_DOUBLE_EQ(model::stage_parameters(setting.model, kBf16, test::plan_of(1, 1, 1, 1))
                       .of_stage(std::array{model::StageLayers(0, 8)}, 0)
                       .total()
                       .count,
                   kModel);
}

double sum_over_stages(const ModelSpec& model, std::int32_t stages) {
  const model::StageParameters parameters = model::stage_parameters(model, kBf16, test::plan_of(1, 1, 1, 1));
  const std::vector<model::StageLayers> layers(static_cast<std::size_t>(stages),
                                               {0, static_cast<std::int32_t>(model.layers) / stages});
  double sum = 0;
  for (std::size_t s = 0; s < layers.size(); ++s) sum += parameters.of_stage(layers, s).total().count;
  return sum;
}

TEST_F(MemoryTest, StagesHoldTheModelOnce) {
  for (const ModelSpec& model : {setting.model, test::gpt(8, 512, 8, 50257, 1024)}) {
    for (const bool tied : {false, true}) {
      ModelSpec m = model;
      m.tied_embeddings = tied;
      SCOPED_TRACE(testing::Message() << m.name << (tied ? ", tied" : ", untied"));
      EXPECT_DOUBLE_EQ(sum_over_stages(m, 1), m.parameters());
      // A tied head on another stage than the embedding needs its own copy of the token table.
      const double copy = tied ? static_cast<double>(m.vocabulary * m.hidden) : 0;
      for (const std::int32_t stages : {2, 4, 8})
        EXPECT_DOUBLE_EQ(sum_over_stages(m, stages), m.parameters() + copy);
    }
  }
}

TEST_F(MemoryTest, TensorParallelSplitsMatricesAndReplicatesKvHeads) {
  // 4 KV heads on 4 ranks: one each. On 8 ranks still one each, 2 * 64 * 1024 weights, twice the eighth.
  const double vectors = 2 * kHidden, matrices = kBlock - vectors;
  EXPECT_DOUBLE_EQ(
      model::stage_parameters(setting.model, kBf16, test::plan_of(4, 1, 1, 1)).block[0].total().count,
      matrices / 4 + vectors);
  EXPECT_DOUBLE_EQ(
      model::stage_parameters(setting.model, kBf16, test::plan_of(8, 1, 1, 1)).block[0].total().count,
      matrices / 8 + vectors + 2 * 64 * kHidden * (1 - 4.0 / 8));
}

TEST_F(MemoryTest, BiasesFollowTheirColumnsAndPositionsAreWhole) {
  // GPT, h = 1024, 4 ranks: biases of QKV (3 h) and of h -> 4 h (4 h) are split, those of the two
  // row-parallel products (2 h) and two LayerNorms (4 h) are not. 512 learned positions stand on every rank.
  const ModelSpec gpt = test::gpt(8, 1024, 16, 32000, 512);
  const double h = 1024;
  EXPECT_DOUBLE_EQ(model::stage_parameters(gpt, kBf16, test::plan_of(4, 1, 1, 1)).block[0].total().count,
                   12 * h * h / 4 + 7 * h / 4 + 6 * h);
  EXPECT_DOUBLE_EQ(model::stage_parameters(gpt, kBf16, test::plan_of(4, 1, 1, 1)).embedding.count,
                   32000 * h / 4 + 512 * h);
  // Replicated KV heads bring their biases along: 4 of 64 columns on 8 ranks, one each for K and V.
  ModelSpec qwen = setting.model;
  const double before =
      model::stage_parameters(qwen, kBf16, test::plan_of(8, 1, 1, 1)).block[0].total().count;
  qwen.qkv_bias = true;
  EXPECT_DOUBLE_EQ(
      model::stage_parameters(qwen, kBf16, test::plan_of(8, 1, 1, 1)).block[0].total().count - before,
      (1024 + 2 * 4 * 64) / 8.0 + 2 * 64 * 0.5);
}

TEST_F(MemoryTest, ZeroStages) {
  // Rajbhandari et al. 2020, figure 1, over dp * cp = 8: 2 + 4 + 12 bytes per parameter here.
  plan = test::plan_of(1, 2, 1, 4);
  for (int zero = 0; zero <= 3; ++zero) {
    SCOPED_TRACE(zero);
    plan.zero_stage = zero;
    const MemoryUse use = training_stage(inputs(4), 0);
    EXPECT_DOUBLE_EQ(use.weights.value(), 2 * kModel / (zero >= 3 ? 8 : 1));
    EXPECT_DOUBLE_EQ(use.gradients.value(), 4 * kModel / (zero >= 2 ? 8 : 1));
    EXPECT_DOUBLE_EQ(use.optimizer.value(), 12 * kModel / (zero >= 1 ? 8 : 1));
  }
}

TEST_F(MemoryTest, Zero2MayKeepGradientsWhole) {
  plan = test::plan_of(1, 1, 1, 8);
  setting.system.stack.zero2_gradients = Zero2Gradients::last_microbatch;
  plan.zero_stage = 2;
  EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).gradients.value(), 4 * kModel);
  plan.zero_stage = 3;
  EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).gradients.value(), 4 * kModel / 8);
}

TEST_F(MemoryTest, Buffers) {
  // Gradient bucket: never more than the gradients. Two boundary tensors. Two gathered blocks under ZeRO-3.
  plan = test::plan_of(1, 1, 1, 2);
  setting.system.stack.communication.bucket = Bytes(25e6);
  EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).buffers.value(), 25e6);
  setting.system.stack.communication.bucket = Bytes(1e15);
  EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).buffers.value(), 4 * kModel);
  plan.zero_stage = 3;
  EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).buffers.value(), 4 * kModel + 2 * 2 * kBlock);
  plan = test::plan_of(1, 1, 2, 1);
  EXPECT_DOUBLE_EQ(training_stage(inputs(4, marked_activations()), 0).buffers.value(), 6e8);
  // A stage of one block gathers one.
  plan = test::plan_of(1, 1, 8, 2);
  plan.zero_stage = 3;
  EXPECT_DOUBLE_EQ(training_stage(inputs(4), 3).buffers.value(), 4 * kBlock + 2 * kBlock);
}

// With as many expert ranks as there are each expert stands once, and nobody gathers it.
TEST_F(MemoryTest, ExpertsThatStandOnceAreNotGathered) {
  setting.model = test::llama_of_experts(8, 8, 0);
  setting.model.moe->first_dense_layers = 0;
  plan = test::plan_of(1, 1, 1, 4);
  plan.expert = 4;
  setting.system.stack.communication.bucket = Bytes(1e3);
  plan.zero_stage = 2;
  const MemoryUse whole = training_stage(inputs(4), 0);
  plan.zero_stage = 3;
  const MemoryUse sharded = training_stage(inputs(4), 0);
  const model::ParameterGroups block = model::stage_parameters(setting.model, kBf16, plan).block[0];
  ASSERT_GT(block[ParallelGroup::expert_data].weights, block[ParallelGroup::data_shard].weights);
  EXPECT_DOUBLE_EQ((sharded.buffers - whole.buffers).value(),
                   2 * block[ParallelGroup::data_shard].weights.value());
  EXPECT_LT(sharded.weights + sharded.buffers, whole.weights + whole.buffers);
}

TEST_F(MemoryTest, TrainingKeepsBf16WeightsAndTwoCopiesOfThoseOfNarrowProducts) {
  // Row- and column-wise, of the blocks' matrices alone; under ZeRO-3 of the two gathered blocks only.
  plan = test::plan_of(1, 2, 1, 4);
  constexpr double kMatrices = kBlock - 2 * kHidden;
  for (const auto& [precision, bytes] :
       {std::pair{PolicyName::fp8, 1.0}, {PolicyName::fp4, 0.5 + 1.0 / 16}}) {
    setting.workload.precision = precision;
    SCOPED_TRACE(name_of(precision));
    const double copies = 2 * bytes * kMatrices;
    plan.zero_stage = 2;
    EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).weights.value(), 2 * kModel + 8 * copies);
    EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).gradients.value(), 4 * kModel / 8);
    EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).optimizer.value(), 12 * kModel / 8);
    plan.zero_stage = 3;
    EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).weights.value(), 2 * kModel / 8);
    setting.system.stack.communication.bucket = Bytes(1e3);
    EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).buffers.value(), 1e3 + 2 * (2 * kBlock + copies));
  }
}

TEST_F(MemoryTest, ServersStoreNarrowWeightsBesideBf16EndsAndCache) {
  setting.workload = test::inference(1000, 200, 32);
  const double bf16_cache = inference_stage(inputs(1), 0, 32, 1200).kv_cache.value();
  for (const auto& [precision, bytes] :
       {std::pair{PolicyName::fp8, 1.0}, {PolicyName::fp4, 0.5 + 1.0 / 16}}) {
    setting.workload.precision = precision;
    const MemoryUse use = inference_stage(inputs(1), 0, 32, 1200);
    EXPECT_DOUBLE_EQ(use.weights.value(),
                     8 * (bytes * (kBlock - 2 * kHidden) + 2 * 2 * kHidden) + 2 * (2 * kTable + kHidden));
    EXPECT_DOUBLE_EQ(use.kv_cache.value(), bf16_cache);
  }
}

TEST_F(MemoryTest, OneForwardOneBackwardHoldsOneMicrobatchPerStageAhead) {
  plan = test::plan_of(1, 1, 4, 1);
  for (const int m : {1, 2, 3, 4, 16}) {
    const MemoryInputs in = inputs(m, marked_activations());
    for (int s = 0; s < 4; ++s) {
      SCOPED_TRACE(testing::Message() << m << " microbatches, stage " << s);
      const double flights = std::min(m, 4 - s);
      const double ends = s == 0 ? flights * 1e2 : s == 3 ? 10 : 0;
      EXPECT_DOUBLE_EQ(training_stage(in, s).activations.value(), flights * 2 * 1e6 + 1e4 + ends);
      EXPECT_EQ(training_stage(in, s).logits.value(), s == 3 ? 7e9 : 0);
    }
  }
}

TEST_F(MemoryTest, BlocksOfAnotherKindHoldTheirOwn) {
  // 3 blocks of one kind and 2 of another, one microbatch in flight; the larger working set counts.
  ActivationBytes activations = marked_activations();
  activations.block[1] = {Bytes(5e6), Bytes(3e4), Bytes(4e6)};
  MemoryInputs in = inputs(1, activations);
  layers.front() = model::StageLayers(0, 3);
  layers.front().add(1, 2);
  EXPECT_DOUBLE_EQ(training_stage(in, 0).activations.value(), 3 * 1e6 + 2 * 5e6 + 3e4 + 1e2 + 10);
  // What each weighs: 3 of the model's own blocks, 2 of 1e6 parameters, 2 bytes each.
  in.parameters.block[1][ParallelGroup::data_shard].weights = Bytes(2 * 1e6);
  EXPECT_DOUBLE_EQ(training_stage(in, 0).weights.value(), 2 * (kModel - 5 * kBlock + 2 * 1e6));
  // zero_bubble, all but the running microbatch's last block put off. That is the first, of the first kind.
  plan = test::plan_of(1, 1, 1, 1);
  in.pipeline.kind = ScheduleKind::zero_bubble;
  in.activations.block[0].put_off = Bytes(2e6);
  in.activations.block[1].put_off = Bytes(9e6);
  EXPECT_DOUBLE_EQ(training_stage(in, 0).activations.value(), 1e6 + 2 * 2e6 + 2 * 9e6 + 3e4 + 1e2 + 10);
}

TEST_F(MemoryTest, GpipeHoldsEveryMicrobatchOnEveryStage) {
  plan = test::plan_of(1, 1, 4, 1);
  plan.schedule = ScheduleKind::gpipe;
  const MemoryInputs in = inputs(16, marked_activations());
  EXPECT_DOUBLE_EQ(training_stage(in, 0).activations.value(), 16 * 2 * 1e6 + 1e4 + 16 * 1e2);
  EXPECT_DOUBLE_EQ(training_stage(in, 1).activations.value(), 16 * 2 * 1e6 + 1e4);
  // All forwards of the head come before its first backward.
  EXPECT_DOUBLE_EQ(training_stage(in, 3).activations.value(), 16 * 2 * 1e6 + 1e4 + 16 * 10);
  EXPECT_DOUBLE_EQ(training_stage(in, 3).logits.value(), 7e9 + 15 * 2e9);
}

TEST_F(MemoryTest, ZeroBubbleHoldsWhatItPutsOff) {
  // Stage s begins a backward with p - s microbatches in flight and s put off, 2 layers of 1e6 or 7e5 each.
  // Where what is put off takes more, as under recompute, the peak is at the second of the two layers.
  plan = test::plan_of(1, 1, 4, 1);
  plan.schedule = ScheduleKind::zero_bubble;
  ActivationBytes activations = marked_activations();
  activations.block[0].put_off = Bytes(7e5);
  MemoryInputs in = inputs(16, activations);
  EXPECT_DOUBLE_EQ(training_stage(in, 0).activations.value(), 4 * 2 * 1e6 + 1e4 + 4 * 1e2);
  EXPECT_DOUBLE_EQ(training_stage(in, 1).activations.value(), (3 * 1e6 + 1 * 7e5) * 2 + 1e4);
  EXPECT_DOUBLE_EQ(training_stage(in, 3).activations.value(), (1 * 1e6 + 3 * 7e5) * 2 + 1e4 + 10);
  activations.block[0].put_off = Bytes(3e6);
  MemoryInputs recomputed = inputs(16, activations);
  EXPECT_DOUBLE_EQ(training_stage(recomputed, 0).activations.value(), 7 * 1e6 + 3e6 + 1e4 + 4 * 1e2);
  EXPECT_DOUBLE_EQ(training_stage(recomputed, 3).activations.value(), 1e6 + 7 * 3e6 + 1e4 + 10);
}

TEST_F(MemoryTest, TheLastStageHoldsWhatItsHeadDefers) {
  // 1f1b: the last of m microbatches is at its loss when D of the m - 1 before it wait, 5e4 each. Interleaved with
  // m = p all heads are saved before the first backward and none of them comes on top.
  plan = test::plan_of(1, 1, 4, 1);
  ActivationBytes activations = marked_activations();
  activations.head_put_off = Bytes(5e4);
  const auto extra = [&](int m, int stage) {
    setting.system.stack.head.deferred_weight_gradient = false;
    const double off = training_stage(inputs(m, activations), stage).total().value();
    setting.system.stack.head.deferred_weight_gradient = true;
    return training_stage(inputs(m, activations), stage).total().value() - off;
  };
  EXPECT_DOUBLE_EQ(extra(16, 3), 15 * 5e4);
  EXPECT_DOUBLE_EQ(extra(1, 3), 0);
  EXPECT_EQ(extra(16, 2), 0);
  plan.schedule = ScheduleKind::gpipe;
  EXPECT_EQ(extra(16, 3), 0);
  plan.schedule = ScheduleKind::interleaved;
  plan.virtual_stages = 2;
  EXPECT_DOUBLE_EQ(extra(8, 3), 7 * 5e4);
  EXPECT_DOUBLE_EQ(extra(4, 3), 0);
}

TEST_F(MemoryTest, InterleavedHoldsMoreOfSmallerChunks) {
  // Narayanan et al. 2021: stage 0 holds 2 (p - 1) + (v - 1) p + 1 chunks, here 6 + 4 + 1 = 11 of one layer.
  plan = test::plan_of(1, 1, 4, 1);
  plan.schedule = ScheduleKind::interleaved;
  plan.virtual_stages = 2;
  const MemoryInputs in = inputs(16, marked_activations());
  EXPECT_DOUBLE_EQ(training_stage(in, 1).activations.value(), 9 * 1e6 + 1e4);
  EXPECT_DOUBLE_EQ(training_stage(in, 3).activations.value(), 5 * 1e6 + 1e4 + 10);
  // With m = p all forwards run first: every stage holds m v chunks, the last one m heads.
  EXPECT_DOUBLE_EQ(training_stage(inputs(4, marked_activations()), 3).activations.value(),
                   8 * 1e6 + 1e4 + 4 * 10);
}

TEST_F(MemoryTest, DualPipesChunksHoldTheirOwnMicrobatches) {
  // Stage 0 of 4: 4 microbatches of the first part, with the embedding, and one of the last, which its loss has just
  // left; stage 1: 3 and 2 of the inner parts. Parts of 1, 2, 3 and 4 layers; no stage puts more off than it holds.
  plan = test::plan_of(1, 1, 4, 1);
  plan.schedule = ScheduleKind::dualpipe;
  MemoryInputs in = inputs(16, marked_activations());
  in.pipeline.virtual_stages = 2;
  std::vector<model::StageLayers> chunks;
  for (std::int32_t s = 0; s < 4; ++s) {
    chunks.emplace_back(0, s + 1);
    chunks.emplace_back(0, 4 - s);
    layers[static_cast<std::size_t>(s)] = model::StageLayers(0, 5);
  }
  in.chunks = chunks;
  const double ends = 4 * 1e2 + 10;
  EXPECT_DOUBLE_EQ(training_stage(in, 0).activations.value(), (4 * 1 + 1 * 4) * 1e6 + 1e4 + ends);
  EXPECT_DOUBLE_EQ(training_stage(in, 3).activations.value(), (4 * 1 + 1 * 4) * 1e6 + 1e4 + ends);
  EXPECT_DOUBLE_EQ(training_stage(in, 1).activations.value(), (3 * 2 + 2 * 3) * 1e6 + 1e4);
  EXPECT_DOUBLE_EQ(training_stage(in, 2).activations.value(), (3 * 2 + 2 * 3) * 1e6 + 1e4);
}

TEST_F(MemoryTest, FragmentationStretchesActivationsOnly) {
  setting.system.stack.memory.fragmentation = 1.25;
  setting.system.stack.memory.reserve = Bytes(1e9);
  const MemoryUse use = training_stage(inputs(4, marked_activations()), 0);
  EXPECT_DOUBLE_EQ(use.activations.value(), 1.25 * (8 * 1e6 + 1e4 + 1e2 + 10));
  EXPECT_DOUBLE_EQ(use.logits.value(), 7e9);
  EXPECT_DOUBLE_EQ(use.reserve.value(), 1e9);
  EXPECT_DOUBLE_EQ(use.weights.value(), 2 * kModel);
}

TEST_F(MemoryTest, WorkspaceIsABuffer) {
  const double before = training_stage(inputs(4), 0).buffers.value();
  setting.system.stack.memory.workspace = Bytes(5e7);
  EXPECT_DOUBLE_EQ(training_stage(inputs(4), 0).buffers.value(), before + 5e7);
  setting.workload = test::inference(1000, 200, 32);
  EXPECT_DOUBLE_EQ(inference_stage(inputs(1), 0, 32, 1200).buffers.value(), 5e7);
}

TEST_F(MemoryTest, KvCache) {
  // Keys and values, 2 bytes, layers, local KV heads of 64, tokens of every sequence over the context group.
  setting.workload = test::inference(1000, 200, 32);
  for (const auto& [tp, kv] : {std::pair{1, 4}, {2, 2}, {4, 1}, {8, 1}}) {
    plan = test::plan_of(tp, 2, 2, 1);
    const MemoryUse use = inference_stage(inputs(1), 0, 32, 1200);
    EXPECT_DOUBLE_EQ(use.kv_cache.value(), 2.0 * 2 * 4 * kv * 64 * (1200 / 2) * 32) << "tp " << tp;
  }
}

TEST_F(MemoryTest, InferenceKeepsWeightsAndNoTrainingState) {
  setting.workload = test::inference(1000, 200, 32);
  const MemoryUse use = inference_stage(inputs(1, marked_activations()), 0, 32, 1200);
  EXPECT_DOUBLE_EQ(use.weights.value(), 2 * kModel);
  EXPECT_EQ(use.gradients.value(), 0);
  EXPECT_EQ(use.optimizer.value(), 0);
  EXPECT_DOUBLE_EQ(use.activations.value(), 1e4);
  EXPECT_DOUBLE_EQ(use.logits.value(), 7e9);
  EXPECT_DOUBLE_EQ(use.total().value(), (use.weights + use.kv_cache + use.activations + use.logits).value());
}

}  // namespace
}  // namespace shardscape::memory
