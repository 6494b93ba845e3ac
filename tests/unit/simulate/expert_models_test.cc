// Do models with experts and latent attention go through every pass: training and serving, in both modes?
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/model/block_kinds.h"
#include "engine/model/head.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/further_token.h"

namespace shardscape {
namespace {

/// Six layers, the first of them dense; one shared expert; two GPUs.
Setting experts_of(Phase phase, bool latent) {
  Setting s;
  s.model = test::llama_of_experts(6, 8, 1);
  if (latent) {
    s.model.latent = LatentAttention{AttentionKind::mla, 256, 128, 32, 64, 64};
    s.model.kv_heads = 16;
    s.model.head_dim = 96;
  }
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(2, 100e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.workload = phase == Phase::training ? test::training(1024, 4) : test::inference(800, 100, 4);
  return s;
}

Prediction predict_experts(const Setting& setting, std::int32_t stages,
                           ExecutionMode mode = ExecutionMode::hierarchical) {
  Simulator simulator(setting, {.mode = mode});
  return simulator.run(test::plan_of(2 / stages, 1, stages, 1));
}

/// Bytes of optimizer state on the last of two stages.
double last_optimizer(const Setting& setting) {
  Simulator simulator(setting, SimulateOptions{});
  Details details;
  simulator.run(test::plan_of(1, 1, 2, 1), {}, &details);
  return details.stage_memory.back().optimizer.value();
}

// Links to one other rank, one group at a time, whole iterations: executed, nothing can come out otherwise.
TEST(ExpertSteps, BothModesAgree) {
  constexpr double kRounding = 1e-9;
  for (const bool latent : {false, true}) {
    for (const int stages : {1, 2}) {
      const Setting training = experts_of(Phase::training, latent);
      const Prediction a = predict_experts(training, stages);
      const Prediction b = predict_experts(training, stages, ExecutionMode::flattened);
      ASSERT_EQ(a.status, Status::ok);
      EXPECT_NEAR(b.step_time / a.step_time, 1, kRounding) << latent << stages;
      const Setting serving = experts_of(Phase::inference, latent);
      const Prediction c = predict_experts(serving, stages);
      const Prediction d = predict_experts(serving, stages, ExecutionMode::flattened);
      ASSERT_EQ(c.status, Status::ok);
      EXPECT_NEAR(d.itl / c.itl, 1, kRounding) << latent << stages;
      EXPECT_NEAR(d.ttft / c.ttft, 1, kRounding) << latent << stages;
    }
  }
}

// Six layers, 900 tokens in blocks of 16 (912), 4 requests at once: 128 + 32 values of 2 bytes each, on every rank.
TEST(ExpertSteps, TheLatentCacheIsWholeOnEveryRank) {
  const Setting s = experts_of(Phase::inference, true);
  EXPECT_DOUBLE_EQ(predict_experts(s, 1).memory.kv_cache.value(), 4 * 912 * 6 * 160 * 2.0);
  EXPECT_DOUBLE_EQ(predict_experts(s, 2).memory.kv_cache.value(), 4 * 912 * 3 * 160 * 2.0);
}

TEST(ExpertSteps, AllExpertsAreHeldAndFewComputed) {
  // As many FLOPs as the dense model whose MLP is as wide as what a token goes through, and more weights.
  Setting sparse = experts_of(Phase::training, false);
  sparse.model.moe->first_dense_layers = 0;
  Setting dense = sparse;
  dense.model.moe.reset();
  dense.model.ffn_hidden = (4 + 1) * 512;
  const double s = model::model_flops_per_sequence(sparse.model, 1024).value();
  const double d = model::model_flops_per_sequence(dense.model, 1024).value();
  EXPECT_DOUBLE_EQ(s - d, 6.0 * 6 * 1024 * (1024 * 16));  // the routers
  const Prediction a = predict_experts(sparse, 1), b = predict_experts(dense, 1);
  const double more = 6.0 * ((16 - 4) * 3 * 512 * 1024 / 2.0 + 16 * 1024);  // per rank, of two
  const StackProfile::State& state = sparse.system.stack.state;
  EXPECT_NEAR((a.memory.optimizer - b.memory.optimizer).value(),
              (state.master_bytes + state.moment_bytes) * more, 1);
  EXPECT_GT(a.step_time, b.step_time);
}

TEST(ExpertSteps, FurtherTokensAreALayerAndAHeadMore) {
  // On one stage: one layer's parameters and two projections' (2 h x h), of which a tensor group splits matrices of
  // the layer alone; the head again.
  Setting s = experts_of(Phase::training, false);
  const Prediction without = predict_experts(s, 2);
  const double held = last_optimizer(s);
  const double flops = model::model_flops_per_sequence(s.model, 1024).value();
  const auto head = [&] { return model::head_operators(s, {1, 1, 1, false}, 1024, model::Mode::training); };
  const auto further = [&] { return model::further_operators(s, {1, 1, 1, false}, 1024); };
  const auto products = [](const std::vector<model::Operator>& ops) {
    double sum = 0;
    for (const model::Operator& op : ops)
      sum += op.kind == model::OperatorKind::gemm        ? op.gemm.flops().value()
             : op.kind == model::OperatorKind::attention ? 4 * op.attention.head_dim * op.attention.scores()
                                                         : 0;
    return sum;
  };
  const double before = products(head());
  s.model.moe->mtp_layers = 1;
  EXPECT_DOUBLE_EQ(model::model_flops_per_sequence(s.model, 1024).value() - flops,
                   3 * (products(head()) + products(further()) - before));
  const Prediction with = predict_experts(s, 2);
  EXPECT_GT(with.step_time, without.step_time);
  // The last stage: its own layer, and a copy of the embedding, which lies on the first.
  const double more = test::further_token_parameters(s.model) + 32000.0 * 1024;
  const StackProfile::State& state = s.system.stack.state;
  EXPECT_NEAR((last_optimizer(s) - held) / ((state.master_bytes + state.moment_bytes) * more), 1, 1e-12);
  // Servers run without modules for further tokens.
  Setting serving = experts_of(Phase::inference, false);
  const Prediction plain = predict_experts(serving, 2);
  serving.model.moe->mtp_layers = 1;
  EXPECT_EQ(predict_experts(serving, 2).itl, plain.itl);
  EXPECT_EQ(predict_experts(serving, 2).memory_peak, plain.memory_peak);
}

}  // namespace
}  // namespace shardscape
