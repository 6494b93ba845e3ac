#include "sweep/yaml/huggingface.h"

#include <gtest/gtest.h>

#include "tests/unit/yaml/problems_of.h"

namespace shardscape::yaml {
namespace {

ModelSpec good_config(const std::string& text) {
  Diagnostics diagnostics;
  const auto model = read_huggingface(text, "given", "config.json", diagnostics);
  EXPECT_TRUE(model.has_value()) << diagnostics.to_string();
  return model.value_or(ModelSpec());
}

Diagnostics bad_config(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_huggingface(text, "given", "config.json", diagnostics).has_value());
  return diagnostics;
}

const char* const kLlama = R"({
  "model_type": "llama",
  "hidden_size": 512,
  "num_hidden_layers": 6,
  "num_attention_heads": 8,
  "num_key_value_heads": 2,
  "intermediate_size": 1536,
  "vocab_size": 32000,
  "max_position_embeddings": 4096,
  "rope_theta": 10000.0
})";

TEST(HuggingFace, Llama) {
  const ModelSpec m = good_config(kLlama);
  EXPECT_EQ(m.name, "given");
  EXPECT_EQ(m.layers, 6);
  EXPECT_EQ(m.hidden, 512);
  EXPECT_EQ(m.heads, 8);
  EXPECT_EQ(m.kv_heads, 2);
  EXPECT_EQ(m.head_dim, 64);
  EXPECT_EQ(m.ffn_hidden, 1536);
  EXPECT_EQ(m.vocabulary, 32000);
  EXPECT_EQ(m.max_positions, 0);
  EXPECT_EQ(m.mlp, MlpKind::swiglu);
  EXPECT_EQ(m.norm, NormKind::rmsnorm);
  EXPECT_EQ(m.position, PositionKind::rotary);
  EXPECT_FALSE(m.tied_embeddings || m.linear_bias || m.qkv_bias);
  // 6 x (512 x 768 QKV + 512 x 512 + 3 x 512 x 1536 + 2 x 512) + 2 x 32000 x 512 + 512
  EXPECT_EQ(m.parameters(), 6.0 * (512 * 768 + 512 * 512 + 3 * 512 * 1536 + 1024) + 2.0 * 32000 * 512 + 512);
}

TEST(HuggingFace, MistralHasItsOwnHeadDim) {
  const ModelSpec m = good_config(R"({"model_type": "mistral", "hidden_size": 640, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": null, "head_dim": 128, "intermediate_size": 100,
    "vocab_size": 10, "_name_or_path": "org/name"})");
  EXPECT_EQ(m.head_dim, 128);
  EXPECT_EQ(m.kv_heads, 4);
  EXPECT_EQ(m.name, "org/name");
}

TEST(HuggingFace, Qwen2HasQkvBiasAndMayTie) {
  const ModelSpec m = good_config(R"({"model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 100, "vocab_size": 10, "tie_word_embeddings": true})");
  EXPECT_TRUE(m.qkv_bias);
  EXPECT_FALSE(m.linear_bias);
  EXPECT_TRUE(m.tied_embeddings);
}

TEST(HuggingFace, Gpt2NamesAndDefaults) {
  const std::string text = R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
    "vocab_size": 50257, "n_positions": 1024, "resid_pdrop": 0.1, "n_inner": null})";
  const ModelSpec m = good_config(text);
  EXPECT_EQ(m.ffn_hidden, 4 * 768);
  EXPECT_EQ(m.max_positions, 1024);
  EXPECT_EQ(m.kv_heads, 12);
  EXPECT_EQ(m.head_dim, 64);
  EXPECT_EQ(m.mlp, MlpKind::gelu);
  EXPECT_EQ(m.norm, NormKind::layernorm);
  EXPECT_EQ(m.position, PositionKind::learned);
  EXPECT_TRUE(m.tied_embeddings && m.linear_bias);
  EXPECT_EQ(m.dropout, 0.1);
  EXPECT_EQ(m.parameters(), 124439808);  // GPT-2 small as published
}

TEST(HuggingFace, GptNeoxIsRotaryAndUntied) {
  const ModelSpec m = good_config(R"({"model_type": "gpt_neox", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 10, "max_position_embeddings": 2048})");
  EXPECT_EQ(m.position, PositionKind::rotary);
  EXPECT_EQ(m.max_positions, 0);
  EXPECT_TRUE(m.linear_bias);
  EXPECT_FALSE(m.tied_embeddings);
  EXPECT_EQ(m.mlp, MlpKind::gelu);
}

TEST(HuggingFace, GptNeoHasLearnedPositions) {
  const ModelSpec m =
      good_config(R"({"model_type": "gpt_neo", "hidden_size": 64, "num_layers": 2, "num_heads": 4,
    "intermediate_size": null, "vocab_size": 10, "max_position_embeddings": 2048})");
  EXPECT_EQ(m.position, PositionKind::learned);
  EXPECT_EQ(m.max_positions, 2048);
  EXPECT_EQ(m.ffn_hidden, 256);
  EXPECT_TRUE(m.tied_embeddings);
}

TEST(HuggingFace, ProblemsNameFileAndKey) {
  EXPECT_TRUE(reports(bad_config("{\n  \"model_type\": \"t5\"\n}"), "config.json:2:3: model_type",
                      "unsupported family \"t5\""));
  EXPECT_TRUE(reports(bad_config("{}"), "config.json:1:1: model_type", "missing"));
  EXPECT_TRUE(reports(bad_config("[]"), "config.json:1:1", "one JSON object"));
  EXPECT_TRUE(reports(bad_config("{\n \"a\": }"), "config.json:2:7", "not valid JSON"));
  EXPECT_TRUE(reports(bad_config("{\"a\": 1e999}"), "config.json:1:1", "not valid JSON: number overflow"));
  const Diagnostics missing = bad_config("{\"model_type\": \"llama\",\n \"hidden_size\": \"big\"}");
  EXPECT_TRUE(reports(missing, "config.json:1:1: num_hidden_layers", "missing"));
  EXPECT_TRUE(reports(missing, "config.json:1:1: vocab_size", "missing"));
  EXPECT_TRUE(reports(missing, "config.json:2:2: hidden_size", "must be an integer, not \"big\""));
}

TEST(HuggingFace, RulesOfTheSpecNameTheConfigsKey) {
  std::string text = kLlama;
  text.replace(text.find("\"num_key_value_heads\": 2"), 24, "\"num_key_value_heads\": 3");
  EXPECT_TRUE(reports(bad_config(text), "config.json:6:3: num_key_value_heads", "must divide heads"));
}

}  // namespace
}  // namespace shardscape::yaml
