// Do layers with experts compute, keep, hold and send what their equations say?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include "engine/model/block_kinds.h"
#include "engine/model/mlp/moe.h"
#include "engine/step/layers/price_layers.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::model {
namespace {

constexpr std::int64_t kTokens = 2048;

/// Four layers, the first of them dense; two shared experts.
Setting with_experts() {
  Setting s;
  s.model = test::llama_of_experts(4, 4, 2);
  s.system.device = test::round_device();
  s.system.stack = test::plain_stack();
  s.workload = test::training(kTokens, 8);
  return s;
}

const Operator& named(const std::vector<Operator>& operators, std::string_view name) {
  const auto at = std::ranges::find(operators, name, &Operator::name);
  EXPECT_NE(at, operators.end()) << name;
  return at == operators.end() ? operators.front() : *at;
}

double product_flops(const std::vector<Operator>& operators) {
  double sum = 0;
  for (const Operator& op : operators)
    if (op.kind == OperatorKind::gemm) sum += op.gemm.flops().value();
  return sum;
}

TEST(Experts, KindsOfLayersAndTheirNumber) {
  const Setting s = with_experts();
  EXPECT_EQ(block_kinds(s.model).size(), 2U);
  EXPECT_EQ(kind_of_layer(s.model, 0), 0U);
  for (std::int64_t layer = 1; layer < 4; ++layer) EXPECT_EQ(kind_of_layer(s.model, layer), 1U);
  const StageLayers layers = all_layers(s.model);
  EXPECT_EQ(layers.begin()[0].count, 1);
  EXPECT_EQ(layers.begin()[1].count, 3);
}

TEST(Experts, EveryMixtureOfWindowsAndExpertsFindsItsKinds) {
  // Each layer's kind, told by its window and its operators, is what the model says of that layer.
  for (const char* pattern : {"", "L", "LG", "LLLG", "GL"}) {
    for (const auto& [first, every] : {std::tuple{0, 1}, {1, 1}, {0, 2}, {2, 2}}) {
      Setting s = with_experts();
      s.model.layers = 8;
      s.model.sliding_window = *pattern == '\0' ? 0 : 64;
      s.model.window_pattern = pattern;
      s.model.moe->first_dense_layers = first;
      s.model.moe->every = every;
      std::int32_t count = 0;
      for (const BlockRun& run : all_layers(s.model)) count += run.count;
      EXPECT_EQ(count, 8);
      for (std::int64_t layer = 0; layer < 8; ++layer) {
        const std::size_t kind = kind_of_layer(s.model, layer);
        ASSERT_LT(kind, block_kinds(s.model).size());
        const std::string_view letters = pattern;
        const bool local =
            !letters.empty() && letters[static_cast<std::size_t>(layer) % letters.size()] == 'L';
        EXPECT_EQ(attention_window(s.model, kind) > 0, local) << pattern << ' ' << layer;
        const auto operators = block_operators(s, kind, {1, 1, 1, false}, 128, Mode::training);
        const bool experts = std::ranges::find(operators, "router", &Operator::name) != operators.end();
        EXPECT_EQ(experts, s.model.moe->in_layer(layer)) << first << ' ' << every << ' ' << layer;
      }
    }
  }
}

TEST(Experts, ActiveFlopsOfALayer) {
  // Of 2048 tokens each: 2 FLOPs for each weight of the router (1024 x 16), of 4 experts and of the shared MLP (three
  // matrices of 1024 x 512 and of 1024 x 1024), and of attention.
  const Setting s = with_experts();
  const double attention = 1024.0 * (16 + 2 * 4) * 64 + 1024.0 * 1024;
  const double weights = attention + 1024 * 16 + 4 * 3 * 1024.0 * 512 + 3 * 1024.0 * 1024;
  EXPECT_DOUBLE_EQ(product_parameters(s.model, 1), weights);
  for (const auto& [t, c] : {std::tuple{1, 1}, {4, 1}, {2, 4}}) {
    const auto operators = block_operators(s, 1, {t, c, 1, t > 1}, kTokens, Mode::training);
    EXPECT_NEAR(product_flops(operators) * t * c / (2 * kTokens * weights), 1, 1e-12) << t << ' ' << c;
  }
}

TEST(Experts, ShapesOfTheirProducts) {
  const Setting s = with_experts();
  const auto operators = block_operators(s, 1, {4, 2, 2, true}, kTokens, Mode::training);
  // 2048 tokens on each context rank, 4 of 16 experts each: 512 an expert, a quarter of its width here.
  EXPECT_EQ(named(operators, "expert_in").gemm, (compute::GemmShape{512, 2 * 128, 1024, 16}));
  EXPECT_EQ(named(operators, "expert_out").gemm, (compute::GemmShape{512, 1024, 128, 16}));
  EXPECT_EQ(named(operators, "router").gemm, (compute::GemmShape{512, 16, 1024, 1}));  // own tokens
  EXPECT_EQ(named(operators, "shared_in").gemm, (compute::GemmShape{2048, 2 * 256, 1024, 1}));
}

TEST(Experts, ACapacityPadsWhatTheyGet) {
  Setting s = with_experts();
  s.model.moe->capacity_factor = 1.5;
  const auto operators = block_operators(s, 1, {1, 1, 1, false}, kTokens, Mode::training);
  EXPECT_EQ(named(operators, "expert_in").gemm.m, 768);
  EXPECT_EQ(named(operators, "expert_out").saved.value(), 2 * 1.5 * 4 * 2048 * 512);
}

TEST(Experts, KeepTheirCopiesOfTokens) {
  // bf16, per token: the router's input 2 h; probabilities 4 + 1 bytes for each of 16 experts; 4 copies of h; gate
  // and up and their product of 4 experts and of the shared MLP. Attention and norms beside them as in a dense layer.
  const Setting s = with_experts();
  const auto saved = [&](std::size_t kind) {
    double sum = 0;
    bool mlp = false;
    for (const Operator& op : block_operators(s, kind, {1, 1, 1, false}, kTokens, Mode::training)) {
      mlp = mlp || op.name == "mlp_gather";
      if (mlp) sum += op.saved.value();
    }
    return sum / kTokens;
  };
  EXPECT_DOUBLE_EQ(saved(0), 2 * 1024 + 3 * 2 * 4096);
  EXPECT_DOUBLE_EQ(saved(1), 2 * 1024 + 5 * 16 + 4 * 2 * 1024 + 3 * 2 * (4 * 512 + 1024));
}

TEST(Experts, AllOfThemWaitForTheirWeightGradients) {
  // Each copy of a token waits with the inputs of both products, h and f, and the gradients of their outputs, 2 f and
  // h, in bf16, however many experts share the copies.
  Setting s = with_experts();
  for (const int experts : {8, 16, 32}) {
    s.model.moe->experts = experts;
    const auto bytes = [&](std::int64_t chosen) {
      s.model.moe->top_k = chosen;
      return put_off_bytes(block_operators(s, 1, {1, 1, 1, false}, kTokens, Mode::training)).value();
    };
    EXPECT_DOUBLE_EQ(bytes(8) - bytes(4), 4 * kTokens * 2 * (1024 + 512 + 2 * 512 + 1024.0)) << experts;
  }
}

TEST(Experts, WeightsOfOneLayer) {
  // Listed one by one; a tensor group of 4 splits matrices of experts, shared MLP and attention, and no more.
  const Setting s = with_experts();
  const PrecisionPolicy policy = s.workload.policy();
  const double attention = 1024.0 * (16 + 8) * 64 + 1024.0 * 1024, norms = 2 * 1024, router = 16 * 1024;
  const double experts = 16 * 3 * 1024.0 * 512, shared = 3 * 1024.0 * 1024;
  for (const int t : {1, 4}) {
    EXPECT_EQ(block_parameters(s.model, policy, 1, {t}).total().count,
              (attention + experts + shared) / t + norms + router);
  }
  double sum = 0;
  for (const BlockRun& run : all_layers(s.model))
    sum += run.count * block_parameters(s.model, policy, run.kind, {}).total().count;
  EXPECT_EQ(
      sum + s.model.embedding_parameters() + s.model.head_parameters() + s.model.final_norm_parameters(),
      s.model.parameters());
}

TEST(Experts, ASharedGateWeighsAndKeepsAnOutput) {
  // h weights whole on every rank of a tensor group; the shared output, 2 h bytes of each token, for its gradient.
  Setting s = with_experts();
  const auto bytes = [&](Recompute recompute) {
    const LayerKey key{1, 1, 1, false};
    return saved_bytes(block_operators(s, 1, key, kTokens, Mode::training), recompute, s, key, kTokens)
        .value();
  };
  const auto count = [&](std::int32_t tensor) {
    return block_parameters(s.model, s.workload.policy(), 1, {tensor}).total().count;
  };
  const double model = s.model.parameters(), one = count(1), four = count(4), kept = bytes(Recompute::none);
  s.model.moe->shared_gate = true;
  EXPECT_EQ(s.model.parameters() - model, 3 * 1024);  // in three layers
  EXPECT_EQ(count(1) - one, 1024);
  EXPECT_EQ(count(4) - four, 1024);
  EXPECT_EQ(bytes(Recompute::none) - kept, 2 * 1024.0 * kTokens);
}

TEST(Experts, BiasesCountWithThem) {
  Setting s = with_experts();
  s.model.linear_bias = s.model.moe->router_bias = true;
  double sum = 0;
  for (const BlockRun& run : all_layers(s.model))
    sum += run.count * block_parameters(s.model, s.workload.policy(), run.kind, {}).total().count;
  EXPECT_EQ(
      sum + s.model.embedding_parameters() + s.model.head_parameters() + s.model.final_norm_parameters(),
      s.model.parameters());
}

TEST(Experts, ALoneExpertIsTheDenseBlock) {
  Setting dense = with_experts();
  dense.model.moe.reset();
  Setting lone = dense;
  lone.model.moe.emplace();
  lone.model.moe->experts = 1;
  lone.model.moe->expert_ffn_hidden = 4096;
  for (const bool sequence : {false, true}) {
    for (const int t : {1, 4}) {
      const LayerKey key{t, 2, 2, sequence};
      for (const Mode mode : {Mode::training, Mode::prefill}) {
        const auto a = block_operators(dense, 0, key, kTokens, mode),
                   b = block_operators(lone, 0, key, kTokens, mode);
        const step::LayerCost x = step::price_layer(a, dense), y = step::price_layer(b, lone);
        for (const step::LayerPart part : {step::LayerPart::forward, step::LayerPart::backward})
          EXPECT_EQ(x[part].device, y[part].device);
        for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full})
          EXPECT_EQ(saved_bytes(a, r, dense, key, kTokens), saved_bytes(b, r, lone, key, kTokens));
        EXPECT_EQ(put_off_bytes(a), put_off_bytes(b));
      }
      EXPECT_EQ(backward_working_bytes(dense, 0, key, kTokens),
                backward_working_bytes(lone, 0, key, kTokens));
      const auto held = [&](const Setting& s) {
        return block_parameters(s.model, s.workload.policy(), 0, key).total();
      };
      EXPECT_EQ(held(dense).count, held(lone).count);
      EXPECT_EQ(held(dense).weights, held(lone).weights);
      EXPECT_EQ(held(dense).tensors, held(lone).tensors);
    }
  }
  EXPECT_EQ(model_flops_per_sequence(dense.model, kTokens), model_flops_per_sequence(lone.model, kTokens));
}

TEST(Experts, FewTokensReadFewExperts) {
  // 5 tokens with 4 of 16 experts each: 16 (1 - 3/4 / (1 + 4 x 4/16)) = 10 experts get any of the 20 copies.
  const Setting s = with_experts();
  const auto operators = decode_block_operators(s, 1, {1, 1, 5, false}, 100);
  EXPECT_EQ(named(operators, "expert_in").gemm, (compute::GemmShape{2, 1024, 1024, 10}));
  const auto one = decode_block_operators(s, 1, {1, 1, 1, false}, 100);
  EXPECT_EQ(named(one, "expert_in").gemm, (compute::GemmShape{1, 1024, 1024, 4}));
}

TEST(Experts, ATensorGroupSplitsTheirWidth) {
  Setting s = with_experts();
  EXPECT_EQ(tensor_rule(s.model, 4), Reason::none);
  s.model.moe->expert_ffn_hidden = 510;
  EXPECT_EQ(tensor_rule(s.model, 4), Reason::ffn_by_tensor);
  EXPECT_EQ(tensor_rule(s.model, 4, false), Reason::none);
  s = with_experts();
  s.model.moe->shared_ffn_hidden = 1022;
  for (const bool splits_experts : {true, false})
    EXPECT_EQ(tensor_rule(s.model, 4, splits_experts), Reason::ffn_by_tensor);
}

}  // namespace
}  // namespace shardscape::model
