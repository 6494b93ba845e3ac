// Do the presets of models with experts have the parameters that their authors publish?
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sweep/yaml/loader.h"
#include "tests/support/further_token.h"
#include "tests/support/paths.h"

namespace shardscape::yaml {
namespace {

ModelSpec preset(const std::string& name) {
  const auto model = load_model(Catalog({test::source_dir()}), name);
  EXPECT_TRUE(model.has_value()) << name;
  return model.value_or(ModelSpec());
}

/// Which parts authors count as active besides the layers.
enum class Counted { layers, head, head_and_embedding };

struct PublishedSize {
  const char* name;
  double total, active;  ///< in 10^9
  Counted counted;
  double total_tolerance, active_tolerance;  ///< half of the last digit, or what the comment says
};

TEST(ExpertModels, HaveThePublishedParameters) {
  using enum Counted;
  for (
      const PublishedSize& model : {
          // Jiang et al. 2024, section 3; Mistral AI 2024.
          PublishedSize{"mixtral-8x7b", 46.7, 12.9, head_and_embedding, 0.002, 0.005},
          PublishedSize{"mixtral-8x22b", 141, 39, head, 0.004, 0.01},
          // "314 billion parameters", "25 % of the weights active" in the release, 86 B in xAI's model card: of
          // the weights of the code two of eight experts and the rest are 83.8 B, 26.5 %.
          PublishedSize{"grok-1", 314, 86, head, 0.006, 0.03},
          // DeepSeek-AI 2024, arXiv:2405.04434, section 3.1.2 and appendix B (2.4 has two digits).
          PublishedSize{"deepseek-v2", 236, 21, head, 0.002, 0.01},
          PublishedSize{"deepseek-v2-lite", 15.7, 2.4, head, 0.002, 0.022},
          // DeepSeek-AI 2024, arXiv:2412.19437, section 4.2.
          PublishedSize{"deepseek-v3", 671, 37, head, 0.001, 0.0135},
          // Qwen Team 2025, arXiv:2505.09388, and the model cards.
          PublishedSize{"qwen3-30b-a3b", 30.5, 3.3, head_and_embedding, 0.002, 0.02},
          PublishedSize{"qwen3-235b-a22b", 235, 22, head_and_embedding, 0.002, 0.01},
          // OpenAI 2025, arXiv:2508.10925, Table 1.
          PublishedSize{"gpt-oss-20b", 20.91, 3.61, head, 0.0005, 0.0015},
          PublishedSize{"gpt-oss-120b", 116.83, 5.13, head, 0.0005, 0.0015},
          // Meta's model cards; 109 has the vision encoder.
          PublishedSize{"llama4-scout", 109, 17, head_and_embedding, 0.012, 0.0125},
          PublishedSize{"llama4-maverick", 400, 17, head_and_embedding, 0.003, 0.0125},
          // Kimi Team 2025, arXiv:2507.20534, Table 2: 1.04 T, 32.6 B.
          PublishedSize{"kimi-k2", 1040, 32.6, head_and_embedding, 0.0135, 0.01},
          // GLM-4.5 Team 2025, arXiv:2508.06471, Table 1.
          PublishedSize{"glm-4.5", 355, 32, layers, 0.01, 0.01},
      }) {
    const ModelSpec m = preset(model.name);
    EXPECT_NEAR(m.parameters() / 1e9 / model.total, 1, model.total_tolerance) << model.name;
    double active = m.active_parameters();
    if (model.counted == head_and_embedding) active += m.embedding_parameters();
    if (model.counted == layers) active -= m.head_parameters();
    EXPECT_NEAR(active / 1e9 / model.active, 1, model.active_tolerance) << model.name;
  }
}

TEST(ExpertModels, GrokHasAQuarterOfItsExpertsActive) {
  const ModelSpec m = preset("grok-1");
  EXPECT_NEAR(m.active_parameters() / m.parameters(), 0.25, 0.02);  // and all of attention
}

TEST(ExpertModels, TheFurtherTokenOfDeepSeekV3IsWhatItsCheckpointHasMore) {
  // "The total size of DeepSeek-V3 models on Hugging Face is 685B" (its README): the module has copies of embedding
  // and head, of 129,280 x 7168 each, and scales of blocks count as well.
  const ModelSpec m = preset("deepseek-v3");
  const double copies = 2.0 * 129280 * 7168;
  EXPECT_NEAR((m.parameters() + test::further_token_parameters(m) + copies) / 1e9, 685, 0.6);
}

TEST(ExpertModels, LayersAndAliases) {
  EXPECT_EQ(preset("deepseekv2-l4").expert_layers(), 3);
  EXPECT_EQ(preset("deepseekv2-l4").name, "deepseek-v2-l4");
  EXPECT_EQ(preset("grok-1-l32").expert_layers(), 32);
  EXPECT_EQ(preset("deepseek-ai/DeepSeek-R1").name, "deepseek-v3");
  EXPECT_EQ(preset("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8").name, "llama4-maverick");
  EXPECT_EQ(preset("Qwen/Qwen3-235B-A22B-Instruct-2507").name, "qwen3-235b-a22b");
  EXPECT_EQ(preset("Qwen/Qwen3-235B-A22B-Instruct-2507").rotary_base, 5000000);
  EXPECT_EQ(preset("Qwen/Qwen3-235B-A22B-FP8").rotary_base, 1000000);
  EXPECT_EQ(preset("Qwen/Qwen3-30B-A3B-Thinking-2507").rotary_base, 0);  // left to its config.json
}

}  // namespace
}  // namespace shardscape::yaml
