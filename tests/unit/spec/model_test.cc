#include "engine/spec/model.h"

#include <gtest/gtest.h>

#include "tests/support/settings.h"
#include "tests/support/violations.h"

namespace shardscape {
namespace {

using test::violations;

// Totals that the models' own cards and checkpoints state.
TEST(ModelParameters, MatchPublishedTotals) {
  EXPECT_EQ(test::llama2_7b().parameters(), 6'738'415'616.0);
  EXPECT_EQ(test::llama31_8b().parameters(), 8'030'261'248.0);
  EXPECT_EQ(test::llama31_70b().parameters(), 70'553'706'496.0);
}

// GPT-2 small, 124,439,808 parameters (Hugging Face checkpoint): h 768, 12 layers, vocabulary 50257, 1024
// positions, tied, biases everywhere.
TEST(ModelParameters, MatchGpt2Checkpoint) {
  EXPECT_EQ(test::gpt(12, 768, 12, 50257, 1024).parameters(), 124'439'808.0);
}

// Qwen2-7B: 7,615,616,512 parameters; bias on Q, K and V only, untied.
TEST(ModelParameters, MatchQwen2Checkpoint) {
  ModelSpec model = test::llama(28, 3584, 28, 4, 18944, 152064);
  model.qkv_bias = true;
  EXPECT_EQ(model.parameters(), 7'615'616'512.0);
}

// Narayanan et al. 2021, equation 2: P = 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), which leaves out
// only the 2 h of the final norm.
TEST(ModelParameters, MatchTheMegatronFormula) {
  for (const auto& [l, h, a] : {std::tuple{96, 12288, 96}, {48, 6144, 64}, {105, 20480, 128}}) {
    const double P = 12.0 * l * h * h * (1 + 13 / (12.0 * h) + (51200 + 2048) / (12.0 * l * h));
    EXPECT_NEAR(test::gpt(l, h, a).parameters(), P + 2.0 * h, 1e-12 * P) << l << ' ' << h;
  }
}

TEST(ModelParameters, PartsAddUp) {
  const ModelSpec tied = test::gpt(4, 512, 8);
  ModelSpec untied = tied;
  untied.tied_embeddings = false;
  EXPECT_EQ(untied.parameters() - tied.parameters(), 51200.0 * 512);
  EXPECT_EQ(tied.head_parameters(), 0);
}

TEST(ModelValidate, AcceptsRealModels) {
  for (const ModelSpec& model : {test::gpt(96, 12288, 96), test::llama2_7b(), test::llama31_70b()}) {
    EXPECT_EQ(violations(model), "");
  }
}

TEST(ModelValidate, EveryRuleOnce) {
  const auto broken = [](auto change) {
    ModelSpec model = test::gpt(4, 512, 8);
    change(model);
    return violations(model);
  };
  EXPECT_EQ(broken([](ModelSpec& m) { m.layers = 0; }), "layers");
  EXPECT_EQ(broken([](ModelSpec& m) { m.hidden = -1; }), "hidden");
  EXPECT_EQ(broken([](ModelSpec& m) { m.heads = 0; }), "heads");
  EXPECT_EQ(broken([](ModelSpec& m) { m.kv_heads = 0; }), "kv_heads");
  EXPECT_EQ(broken([](ModelSpec& m) { m.kv_heads = 3; }), "kv_heads");
  EXPECT_EQ(broken([](ModelSpec& m) { m.kv_heads = 16; }), "kv_heads");
  EXPECT_EQ(broken([](ModelSpec& m) { m.head_dim = 0; }), "head_dim");
  EXPECT_EQ(broken([](ModelSpec& m) { m.ffn_hidden = 0; }), "ffn_hidden");
  EXPECT_EQ(broken([](ModelSpec& m) { m.vocabulary = 0; }), "vocabulary");
  EXPECT_EQ(broken([](ModelSpec& m) { m.max_positions = 0; }), "max_positions");
  EXPECT_EQ(broken([](ModelSpec& m) { m.position = PositionKind::rotary; }), "max_positions");
  EXPECT_EQ(broken([](ModelSpec& m) { m.qkv_bias = true; }), "qkv_bias");
  EXPECT_EQ(broken([](ModelSpec& m) { m.dropout = 1; }), "dropout");
  EXPECT_EQ(broken([](ModelSpec& m) { m.dropout = -0.1; }), "dropout");
  EXPECT_EQ(broken([](ModelSpec& m) { m.layers = m.hidden = 0, m.dropout = 2; }), "layers hidden dropout");
}

}  // namespace
}  // namespace shardscape
