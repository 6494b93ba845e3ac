// What of a block do stacks compute again under `recompute: selective`, and what do they keep in a format of their own?
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "engine/model/block_kinds.h"
#include "engine/model/head.h"
#include "engine/step/layers/layer_parts.h"
#include "tests/unit/model/block_setting.h"

namespace shardscape::model {
namespace {

using Parts = std::vector<RecomputePart>;

constexpr RecomputePart kCore = RecomputePart::attention_core, kNorms = RecomputePart::norms,
                        kUp = RecomputePart::latent_up, kActivations = RecomputePart::activations,
                        kMlp = RecomputePart::mlp, kExpertLayers = RecomputePart::experts;

/// DeepSeek-V3's two kinds of layer, 0 dense and 1 of experts, in fp8 with fused attention.
Setting deepseek_v3() {
  Setting s = korthikanti();
  s.model = test::llama(61, 7168, 128, 128, 18432, 129280);
  s.model.latent = LatentAttention{AttentionKind::mla, 1536, 512, 64, 128, 128};
  s.model.head_dim = 192;
  s.model.moe = MixtureOfExperts{.experts = 256, .top_k = 8, .expert_ffn_hidden = 2048};
  s.model.moe->shared_experts = 1;
  s.model.moe->shared_ffn_hidden = 2048;
  s.model.moe->first_dense_layers = 3;
  s.system.stack.attention = AttentionKernel::flash;
  s.system.stack.fused_pointwise = true;
  s.workload.precision = PolicyName::fp8;
  return s;
}

/// The stack that its report describes (arXiv:2412.19437, sections 3.2.3 and 3.3.3).
Setting as_reported() {
  Setting s = deepseek_v3();
  s.system.stack.selective_recompute = {kNorms, kUp, kActivations};
  s.system.stack.kept = {KeptFormat::e5m6, KeptFormat::fp8};
  return s;
}

constexpr LayerKey kDealt64{1, 1, 1, false, 64, 1, true};

/// Bytes that a layer keeps of each token.
double kept(const Setting& setting, std::size_t kind, Recompute recompute, const LayerKey& key = kDealt64) {
  const auto operators = block_operators(setting, kind, key, kSequence, Mode::training);
  return saved_bytes(operators, recompute, setting, key, kSequence).value() / kSequence;
}

double kept_of(const Setting& setting, const Parts& parts, const LayerKey& key = {1, 1, 1, false}) {
  Setting changed = setting;
  changed.system.stack.selective_recompute = parts;
  return kept(changed, 0, Recompute::selective, key);
}

// Llama's block in bf16, h = 4096, f = 14336, a = 32: 2 (6 h + h / 2 + 3 f) + 4 a bytes for each token
// (saved_bytes_test).
TEST(KeptActivations, EachPartDropsItsOutputs) {
  const Setting setting = grouped_query();
  const double h = 4096, f = 14336, all = 2 * (6.5 * h + 3 * f) + 4 * 32;
  EXPECT_DOUBLE_EQ(kept_of(setting, {kCore}), all - 2 * h - 4 * 32);  // its output, log-sum-exp
  EXPECT_DOUBLE_EQ(kept_of(setting, {kNorms}), all - 2 * 2 * h);      // inputs of QKV, and of gate and up
  EXPECT_DOUBLE_EQ(kept_of(setting, {kActivations}), all - 2 * f);    // the input of the last product
  EXPECT_DOUBLE_EQ(kept_of(setting, {kMlp}), all - 2 * 3 * f);        // all but its input
  EXPECT_DOUBLE_EQ(kept_of(setting, {kNorms, kMlp}), all - 2 * (2 * h + 3 * f));
  EXPECT_DOUBLE_EQ(kept_of(setting, {kMlp, kActivations}), all - 2 * 3 * f);
  EXPECT_DOUBLE_EQ(kept_of(setting, {kCore, kNorms, kActivations}), all - 2 * (h + 2 * h + f) - 4 * 32);
  // Nothing changes for models that lack the part.
  EXPECT_DOUBLE_EQ(kept_of(setting, {kUp}), all);
  EXPECT_DOUBLE_EQ(kept_of(setting, {kExpertLayers}), all);
  for (const RecomputePart part : {kCore, kNorms, kActivations, kMlp}) {
    Setting changed = setting;
    changed.system.stack.selective_recompute = {part};
    EXPECT_DOUBLE_EQ(kept(changed, 0, Recompute::none, {1, 1, 1, false}), all);
    EXPECT_DOUBLE_EQ(kept(changed, 0, Recompute::full, {1, 1, 1, false}), 2 * h);
  }
}

TEST(KeptActivations, ReluIsReadOffItsOutput) {
  // The last product's input is all that is kept of it: making it again would need the activation's in its place.
  Setting setting = grouped_query();
  setting.model.mlp = MlpKind::relu;
  EXPECT_DOUBLE_EQ(kept_of(setting, {kActivations}), kept(setting, 0, Recompute::none, {1, 1, 1, false}));
  setting.model.mlp = MlpKind::squared_relu;
  EXPECT_DOUBLE_EQ(kept_of(setting, {kActivations}),
                   kept(setting, 0, Recompute::none, {1, 1, 1, false}) - 2 * 14336);
}

TEST(KeptActivations, PlainOperatorsMakeTheirCopiesAgain) {
  // Unfused norms keep a copy of their input in fp32, an unfused SwiGLU the output of its nonlinearity.
  Setting setting = grouped_query();
  setting.system.stack.fused_pointwise = false;
  const double h = 4096, f = 14336, all = kept(setting, 0, Recompute::none, {1, 1, 1, false});
  EXPECT_DOUBLE_EQ(kept_of(setting, {kNorms}), all - 2 * (2 + 4) * h);
  EXPECT_DOUBLE_EQ(kept_of(setting, {kActivations}), all - 2 * 2 * f);
}

TEST(KeptActivations, NormsBehindABranchFeedNoProduct) {
  Setting setting = grouped_query();
  setting.model.norm_place = NormPlace::after;
  EXPECT_DOUBLE_EQ(kept_of(setting, {kNorms}), kept(setting, 0, Recompute::none, {1, 1, 1, false}));
}

TEST(KeptActivations, AnOuterNormIsGatheredAgainWhereTheStackKeepsWhatItGathers) {
  // Tensor groups of 4 with sequence parallelism. Megatron keeps its own tokens and gathers in backward in any case;
  // a stack that keeps all tokens gathers both inputs once more.
  Setting setting = grouped_query();
  setting.system.stack.selective_recompute = {kNorms};
  const LayerKey key{4, 1, 1, true};
  for (const bool keeps : {false, true}) {
    setting.system.stack.keep_gathered = keeps;
    const auto operators = block_operators(setting, 0, key, kSequence, Mode::training);
    const auto nodes = step::nodes(operators, step::LayerPart::repeated);
    EXPECT_EQ(std::ranges::count(nodes, true, &step::Node::call), keeps ? 2 : 0);
    EXPECT_DOUBLE_EQ(kept(setting, 0, Recompute::none, key) - kept(setting, 0, Recompute::selective, key),
                     2 * 2 * 4096 / (keeps ? 1.0 : 4.0));
  }
}

// Bytes for each token of a layer of experts of DeepSeek-V3 in fp8, attention and all else in bf16:
//
//                                               none    as reported, selective
//   input of the first norm              14,336  14,336
//   input of both products down             7,168       0   norms again
//   latent vectors ahead of their norms     4,096   4,096   1,536 + 512
//   the same behind them, fp8               2,048       0   norms again
//   queries, keys, values                 131,072     128   up-projections again; 64 of each key, shared by all heads
//   log-sum-exp of 128 heads                  512     512
//   output of the core                     24,576  24,576   16,384 in 12 bits; without that 32,768 + 16,384
//   input of the second norm               14,336  14,336
//   input of the router, bf16              14,336       0   norms again
//   probabilities and map of 256 experts    1,280   1,280
//   8 copies of the token, fp8             57,344  57,344   dispatched
//   gate and up of 8 experts, fp8          32,768  32,768   without that 65,536
//   their product, fp8                     16,384       0   SwiGLU again
//   the shared expert: input, gate and up, product  7,168 + 4,096 + 2,048  4,096
TEST(KeptActivations, LayersOfDeepSeekV3) {
  constexpr double kAll = 14336 + 7168 + 4096 + 2048 + 131072 + 512 + 24576 + 14336 + 14336 + 1280 + 57344 +
                          32768 + 16384 + 7168 + 4096 + 2048;
  constexpr double kSelective = 14336 + 4096 + 128 + 512 + 24576 + 14336 + 1280 + 57344 + 32768 + 4096;
  static_assert(kAll == 333568 && kSelective == 153472);
  const Setting reported = as_reported(), plain = deepseek_v3();
  EXPECT_DOUBLE_EQ(kept(reported, 1, Recompute::none), kAll);
  EXPECT_DOUBLE_EQ(kept(reported, 1, Recompute::selective), kSelective);
  const double wider = (32768 + 16384 - 24576) + 32768 + 4096;
  EXPECT_DOUBLE_EQ(kept(plain, 1, Recompute::none), kAll + wider);
  // The attention core alone again: the fp8 copy of its output stays.
  EXPECT_DOUBLE_EQ(kept(plain, 1, Recompute::selective), kAll + wider - 32768 - 512);
  // Dense layers: the MLP's 18,432 in place of the experts, its input in fp8.
  const double attention = 14336 + 4096 + 128 + 512 + 24576 + 14336;
  EXPECT_DOUBLE_EQ(kept(reported, 0, Recompute::selective), attention + 2 * 18432);
  EXPECT_DOUBLE_EQ(kept(reported, 0, Recompute::none),
                   attention - 128 + 131072 + 7168 + 2048 + 7168 + 3 * 18432);
}

TEST(KeptActivations, FormatsOfTheirOwnGoWithNarrowProducts) {
  Setting reported = as_reported(), plain = deepseek_v3();
  reported.workload.precision = plain.workload.precision = PolicyName::bf16;
  for (const std::size_t kind : {0U, 1U})
    EXPECT_DOUBLE_EQ(kept(reported, kind, Recompute::none), kept(plain, kind, Recompute::none));
}

TEST(KeptActivations, WholeLayersOfExpertsKeepTheirInput) {
  // Behind the core all but the second norm's input and output in bf16 goes.
  Setting setting = deepseek_v3();
  setting.system.stack.selective_recompute = {kExpertLayers};
  const double attention = 14336 + 7168 + 4096 + 2048 + 131072 + 512 + 32768 + 16384 + 14336;
  EXPECT_DOUBLE_EQ(kept(setting, 1, Recompute::selective), attention + 2 * 7168);
  EXPECT_DOUBLE_EQ(kept(setting, 0, Recompute::selective), kept(setting, 0, Recompute::none));
}

/// Names of what selective recompute runs again in a layer, casts left out.
std::multiset<std::string> repeated(const Setting& setting, std::size_t kind) {
  std::multiset<std::string> names;
  const auto operators = block_operators(setting, kind, kDealt64, kSequence, Mode::training);
  for (const step::Node& node : step::nodes(operators, step::LayerPart::repeated))
    names.insert(std::string(node.op->name));
  return names;
}

TEST(KeptActivations, WhatRunsAgain) {
  using Names = std::multiset<std::string>;
  EXPECT_EQ(repeated(deepseek_v3(), 1), (Names{"attention"}));
  const Names latent = {"input_norm",   "query_norm", "key_value_norm", "query_up",
                        "key_value_up", "rotary",     "mlp_norm",       "swiglu"};
  EXPECT_EQ(repeated(as_reported(), 0), latent);
  Names of_experts = latent;
  of_experts.insert("swiglu");  // the activation of the shared expert
  EXPECT_EQ(repeated(as_reported(), 1), of_experts);
  Setting whole = as_reported();
  whole.system.stack.selective_recompute = {kExpertLayers};
  EXPECT_EQ(repeated(whole, 0), Names{});
  EXPECT_EQ(repeated(whole, 1),
            (Names{"router", "expert_choice", "permute", "dispatch", "expert_in", "swiglu", "expert_out",
                   "combine", "unpermute", "shared_in", "swiglu", "shared_out", "shared_sum"}));
  // Casts that are kernels of their own run again ahead of what is made again: the products down, those up, the
  // router, the shared expert's two and the experts' second.
  Setting casting = as_reported();
  casting.system.stack.quantisation.passes = 1;
  EXPECT_EQ(repeated(casting, 1).count("quantise"), 8U);
}

TEST(KeptActivations, TheHeadsOfFurtherTokensKeepTheirLogits) {
  // Two losses: while one is computed (bf16 logits and gradient) the other one's logits wait.
  Setting setting = deepseek_v3();
  setting.system.stack.fused_loss = true;
  setting.model.moe->mtp_layers = 1;
  const double logits = 2048.0 * 129280;
  EXPECT_DOUBLE_EQ(logits_bytes(setting, {1, 1, 1, false}, kSequence).value(), (4 + 2) * logits);
  EXPECT_DOUBLE_EQ(saved_logits_bytes(setting, {1, 1, 1, false}, kSequence).value(), 2 * 2 * logits);
}

}  // namespace
}  // namespace shardscape::model
