// Are the parameter counts those that the models' authors publish?
#include "engine/spec/model.h"

#include <gtest/gtest.h>

#include "tests/support/further_token.h"

namespace shardscape {
namespace {

ModelSpec llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                std::int64_t ffn, std::int64_t vocabulary) {
  ModelSpec model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = hidden / heads;
  model.ffn_hidden = ffn;
  model.vocabulary = vocabulary;
  model.mlp = MlpKind::swiglu;
  model.norm = NormKind::rmsnorm;
  model.position = PositionKind::rotary;
  return model;
}

ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  ModelSpec model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.ffn_hidden = 4 * hidden;
  model.vocabulary = 51200;
  model.max_positions = 2048;
  model.tied_embeddings = true;
  model.linear_bias = true;
  return model;
}

TEST(ModelParameters, PublishedLlamaTotals) {
  // Totals of the checkpoints' safetensors headers on Hugging Face.
  EXPECT_EQ(llama(32, 4096, 32, 32, 11008, 32000).parameters(), 6'738'415'616.0);       // Llama-2 7B
  EXPECT_EQ(llama(40, 5120, 40, 40, 13824, 32000).parameters(), 13'015'864'320.0);      // Llama-2 13B
  EXPECT_EQ(llama(80, 8192, 64, 8, 28672, 32000).parameters(), 68'976'648'192.0);       // Llama-2 70B
  EXPECT_EQ(llama(32, 4096, 32, 8, 14336, 128256).parameters(), 8'030'261'248.0);       // Llama-3.1 8B
  EXPECT_EQ(llama(80, 8192, 64, 8, 28672, 128256).parameters(), 70'553'706'496.0);      // Llama-3.1 70B
  EXPECT_EQ(llama(126, 16384, 128, 8, 53248, 128256).parameters(), 405'853'388'800.0);  // Llama-3.1 405B
}

TEST(ModelParameters, PublishedGpt2AndQwen2Totals) {
  ModelSpec gpt2 = gpt(12, 768, 12);  // 124,439,808 in the released checkpoint
  gpt2.vocabulary = 50257;
  gpt2.max_positions = 1024;
  EXPECT_EQ(gpt2.parameters(), 124'439'808.0);
  ModelSpec qwen = llama(28, 3584, 28, 4, 18944, 152064);  // Qwen2-7B: 7,615,616,512
  qwen.qkv_bias = true;
  EXPECT_EQ(qwen.parameters(), 7'615'616'512.0);
  ModelSpec small = llama(24, 896, 14, 2, 4864, 151936);  // Qwen2-0.5B, tied: 494,032,768
  small.qkv_bias = true;
  small.tied_embeddings = true;
  EXPECT_EQ(small.parameters(), 494'032'768.0);
}

TEST(ModelParameters, PublishedNeoXAndNeoTotals) {
  ModelSpec neox = gpt(44, 6144, 64);  // GPT-NeoX-20B: 20,554,567,680 (Black et al. 2022, arXiv:2204.06745)
  neox.position = PositionKind::rotary;
  neox.max_positions = 0;
  neox.vocabulary = 50432;
  neox.tied_embeddings = false;
  neox.parallel_residual = true;
  EXPECT_EQ(neox.parameters(), 20'554'567'680.0);
  ModelSpec neo = gpt(32, 2560, 20);  // GPT-Neo 2.7B: 2,651,307,520 in the released checkpoint
  neo.vocabulary = 50257;
  neo.linear_bias = false;
  neo.output_bias = neo.mlp_bias = true;
  EXPECT_EQ(neo.parameters(), 2'651'307'520.0);
}

TEST(ModelParameters, ASharedNormCountsOnce) {
  ModelSpec model = gpt(1, 64, 4);
  model.parallel_residual = true;
  const double apart = model.block_vector_parameters();
  model.shared_norm = true;
  EXPECT_EQ(apart - model.block_vector_parameters(), 2 * 64);  // gain and bias
}

TEST(ModelParameters, NormsByKindAndPlace) {
  ModelSpec model = llama(1, 64, 8, 2, 96, 1000);  // head_dim 8
  const auto vectors = [&] { return model.block_vector_parameters(); };
  model.norm_place = NormPlace::both;
  EXPECT_EQ(vectors(), 4 * 64);
  model.norm_place = NormPlace::after;
  EXPECT_EQ(vectors(), 2 * 64);
  model.qk_norm = QkNorm::per_head;
  EXPECT_EQ(vectors(), 2 * 64 + 2 * 8);
  model.qk_norm = QkNorm::full_width;
  EXPECT_EQ(vectors(), 2 * 64 + (8 + 2) * 8);
  model = gpt(2, 64, 4);
  const double with_biases = model.parameters();
  model.norm_bias = false;
  EXPECT_EQ(with_biases - model.parameters(), (2 * 2 + 1) * 64);
  model.norm_bias = true;
  model.embedding_norm = true;
  EXPECT_EQ(model.parameters() - with_biases, 2 * 64);
}

TEST(ModelParameters, BiasesByPart) {
  ModelSpec model = llama(1, 64, 8, 2, 96, 1000);
  const auto biases = [&] { return model.block_vector_parameters() - 2 * 64; };
  model.qkv_bias = true;
  EXPECT_EQ(biases(), 64 + 2 * 16);
  model.output_bias = true;
  EXPECT_EQ(biases(), 64 + 2 * 16 + 64);
  model.mlp_bias = true;
  EXPECT_EQ(biases(), 64 + 2 * 16 + 64 + 2 * 96 + 64);
  EXPECT_EQ(model.block_column_biases(), 64 + 2 * 16 + 2 * 96);
  const double parts = biases();
  model.qkv_bias = model.output_bias = model.mlp_bias = false;
  model.linear_bias = true;
  EXPECT_EQ(biases(), parts);
}

TEST(ModelRules, NameWhatHasNoEffect) {
  const auto broken = [](const ModelSpec& model, std::string_view field) {
    const Problems problems = model.validate();
    return problems.list().size() == 1 && problems.list().front().field == field;
  };
  ModelSpec model = gpt(1, 64, 4);
  EXPECT_TRUE(model.validate().empty());
  model.shared_norm = true;
  EXPECT_TRUE(broken(model, "shared_norm"));
  model = gpt(1, 64, 4);
  model.output_bias = true;  // linear_bias says so already
  EXPECT_TRUE(broken(model, "output_bias"));
  model = gpt(1, 64, 4);
  model.rotary_fraction = 0.25;  // positions are learned
  EXPECT_TRUE(broken(model, "rotary_fraction"));
  model = gpt(1, 64, 4);
  model.sliding_window = -1;
  EXPECT_TRUE(broken(model, "sliding_window"));
  model = gpt(1, 64, 4);
  model.window_pattern = "LG";  // a pattern without a window
  EXPECT_TRUE(broken(model, "window_pattern"));
  model.sliding_window = 8;
  EXPECT_TRUE(model.validate().empty());
  for (const char* pattern : {"LX", "GG", "lg"}) {
    model.window_pattern = pattern;
    EXPECT_TRUE(!model.validate().empty()) << pattern;
  }
  model = llama(1, 64, 8, 2, 96, 1000);
  model.norm_bias = false;  // rmsnorm has none
  EXPECT_TRUE(broken(model, "norm_bias"));
  model = gpt(1, 64, 4);
  model.parallel_residual = true;
  model.norm_place = NormPlace::both;
  EXPECT_TRUE(broken(model, "norm_place"));
  model = gpt(1, 64, 4);
  model.head_bias = true;  // the head is the embedding
  EXPECT_TRUE(broken(model, "head_bias"));
  model = gpt(1, 64, 4);
  model.attention_dropout = 1;
  EXPECT_TRUE(broken(model, "attention_dropout"));
}

TEST(ModelParameters, NarayananFormula) {
  // Narayanan et al. 2021, eq. 2: P = 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)). The 13 h per layer are the
  // biases 3h + h + 4h + h and two layer norms of 2h; the final norm's 2h is not in the formula.
  struct Shape {
    std::int64_t layers, hidden, heads;
  };
  for (const Shape& s :
       {Shape{24, 2304, 24}, Shape{48, 8192, 64}, Shape{96, 12288, 96}, Shape{128, 25600, 160}}) {
    const double l = static_cast<double>(s.layers), h = static_cast<double>(s.hidden);
    const double published = 12 * l * h * h * (1 + 13 / (12 * h) + (51200 + 2048) / (12 * l * h));
    EXPECT_NEAR(gpt(s.layers, s.hidden, s.heads).parameters(), published + 2 * h, 1e-9 * published)
        << s.hidden;
  }
}

TEST(ModelParameters, PartsAddUp) {
  const ModelSpec model = llama(3, 64, 8, 2, 96, 1000);
  // Wq, Wo: 64 x 64; Wk, Wv: 64 x 16; gate, up, down: 64 x 96.
  EXPECT_EQ(model.block_matrix_parameters(), 2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 96);
  EXPECT_EQ(model.block_vector_parameters(), 2 * 64);
  EXPECT_EQ(model.embedding_parameters(), 64'000);
  EXPECT_EQ(model.head_parameters(), 64'000);
  EXPECT_EQ(model.final_norm_parameters(), 64);
  EXPECT_EQ(model.qkv_width(), 64 + 16 + 16);
  EXPECT_EQ(model.mlp_in_width(), 192);
}

/// Each matrix and vector of a layer by itself, as a checkpoint lists them.
double listed_latent_layer(double experts) {
  const double h = 64, heads = 4, nope = 16, rope = 8, value = 12, q_rank = 24, kv_rank = 20;
  const double attention = h * q_rank + q_rank                 // q_a_proj, q_a_layernorm
                           + q_rank * heads * (nope + rope)    // q_b_proj
                           + h * (kv_rank + rope) + kv_rank    // kv_a_proj_with_mqa, kv_a_layernorm
                           + kv_rank * heads * (nope + value)  // kv_b_proj
                           + heads * value * h;                // o_proj
  const double expert = 3 * h * 32, shared = 3 * h * (2 * 32);
  return attention + 2 * h + experts * expert + shared + h * 16 + 16;  // norms, gate and its bias
}

TEST(ModelParameters, ExpertsAndLatentAttentionByTheirTensors) {
  ModelSpec model = llama(5, 64, 4, 4, 256, 1000);
  model.latent = LatentAttention{AttentionKind::mla, 24, 20, 8, 16, 12};
  model.head_dim = 24;
  MixtureOfExperts moe;
  moe.experts = 16;
  moe.top_k = 3;
  moe.expert_ffn_hidden = 32;
  moe.shared_experts = 2;
  moe.shared_ffn_hidden = 64;
  moe.first_dense_layers = 1;
  moe.router_bias = true;
  model.moe = moe;
  ASSERT_TRUE(model.validate().empty());
  EXPECT_EQ(model.expert_layers(), 4);
  const double dense = listed_latent_layer(0) - 3 * 64 * 64 - 64 * 16 - 16 + 3 * 64 * 256;
  const double ends = 2 * 1000 * 64 + 64;
  EXPECT_EQ(model.parameters(), dense + 4 * listed_latent_layer(16) + ends);
  EXPECT_EQ(model.active_parameters(), dense + 4 * listed_latent_layer(3) + ends - 1000 * 64);
  model.moe->mtp_layers = 1;  // enorm, hnorm, eh_proj, a layer, shared_head.norm
  EXPECT_EQ(test::further_token_parameters(model), listed_latent_layer(16) + 2 * 64 * 64 + 3 * 64);
  EXPECT_EQ(model.parameters(), dense + 4 * listed_latent_layer(16) + ends);
}

TEST(ModelParameters, ALoneExpertIsTheMlp) {
  ModelSpec model = gpt(3, 64, 4);
  const double dense = model.parameters();
  model.moe.emplace();
  model.moe->experts = 1;
  model.moe->expert_ffn_hidden = model.ffn_hidden;
  EXPECT_EQ(model.parameters(), dense);
  EXPECT_EQ(model.active_parameters(), dense - 2048 * 64);  // rows of positions are looked up
}

TEST(ModelLayers, ExpertsAreWhereTheirRuleSays) {
  for (const std::int64_t first : {0, 1, 2, 5}) {
    for (const std::int64_t every : {1, 2, 3, 4}) {
      MixtureOfExperts moe;
      moe.first_dense_layers = first;
      moe.every = every;
      for (std::int64_t layers = first + 1; layers < 30; ++layers) {
        std::int64_t count = 0;
        for (std::int64_t layer = 0; layer < layers; ++layer) count += moe.in_layer(layer) ? 1 : 0;
        EXPECT_EQ(moe.in_layers(layers), count) << first << ' ' << every << ' ' << layers;
      }
    }
  }
}

TEST(ModelParameters, HeadDimMayDifferFromHiddenOverHeads) {
  ModelSpec model = llama(1, 64, 8, 8, 96, 100);
  model.head_dim = 16;  // attention width 128 over a hidden size of 64
  EXPECT_EQ(model.block_matrix_parameters(), 64 * 3 * 128 + 128 * 64 + 3 * 64 * 96);
}

}  // namespace
}  // namespace shardscape
