#include "sweep/yaml/huggingface.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "sweep/yaml/huggingface_keys.h"
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

/// kLlama with another family and further keys.
std::string with(const std::string& keys, const std::string& family = "llama") {
  std::string text = kLlama;
  text.replace(text.find("llama"), 5, family);
  return text.insert(text.rfind('}'), ",\n" + keys + "\n");
}

std::string neox(const std::string& keys) {
  return R"({"model_type": "gpt_neox", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "intermediate_size": 16384, "vocab_size": 50432, )" +
         keys + "}";
}

TEST(HuggingFace, NeoxIsParallelUnlessItSaysOtherwise) {
  const ModelSpec m = good_config(neox(R"("hidden_act": "gelu", "layer_norm_eps": 1e-05, "rotary_pct": 0.25,
    "rotary_emb_base": 10000, "tie_word_embeddings": false, "use_parallel_residual": true)"));
  EXPECT_TRUE(m.parallel_residual);
  EXPECT_FALSE(m.shared_norm);
  EXPECT_EQ(m.rotary_fraction, 0.25);
  EXPECT_EQ(m.parameters(), 6'857'302'016);  // Pythia 6.9B (Biderman et al. 2023, arXiv:2304.01373, table 1)
  EXPECT_TRUE(good_config(neox(R"("rotary_pct": 1.0)")).parallel_residual);
  EXPECT_EQ(good_config(neox(R"("rope_parameters": {"partial_rotary_factor": 0.5})")).rotary_fraction, 0.5);
  EXPECT_FALSE(good_config(neox(R"("use_parallel_residual": false)")).parallel_residual);
}

TEST(HuggingFace, BiasesArePartsOfTheFamily) {
  const ModelSpec unbiased = good_config(kLlama);
  const ModelSpec attention = good_config(with(R"("attention_bias": true)"));
  EXPECT_TRUE(attention.has_qkv_bias() && attention.has_output_bias());
  EXPECT_FALSE(attention.has_mlp_bias());
  EXPECT_EQ(attention.parameters() - unbiased.parameters(), 6 * (768 + 512));
  const ModelSpec both = good_config(with(R"("attention_bias": true, "mlp_bias": true)"));
  EXPECT_EQ(both.parameters() - attention.parameters(), 6 * (2 * 1536 + 512));
  // NeoX: attention_bias is true where it isn't given; the MLP's are always there.
  const double width = 4096;
  EXPECT_EQ(good_config(neox(R"("rotary_pct": 1.0)")).parameters() -
                good_config(neox(R"("attention_bias": false)")).parameters(),
            32 * 4 * width);
  EXPECT_TRUE(reports(bad_config(with(R"("attention_bias": true)", "mistral")),
                      "config.json:12:1: attention_bias", "does not read it"));
}

TEST(HuggingFace, Qwen25SevenBillion) {
  // config.json of Qwen/Qwen2.5-7B; 7,615,616,512 parameters in its checkpoint.
  const ModelSpec m = good_config(R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 3584,
    "initializer_range": 0.02, "intermediate_size": 18944, "max_position_embeddings": 131072,
    "max_window_layers": 28, "model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28,
    "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.40.1",
    "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 152064})");
  EXPECT_EQ(m.parameters(), 7'615'616'512);
  EXPECT_EQ(m.sliding_window, 0);
}

TEST(HuggingFace, GptNeoBiasesAndLocalLayers) {
  // config.json of EleutherAI/gpt-neo-2.7B, shortened; 2,651,307,520 parameters in its checkpoint.
  const std::string text = R"({"architectures": ["GPTNeoForCausalLM"], "activation_function": "gelu_new",
    "attention_dropout": 0, "attention_layers": ["global", "local", "global", "local"],
    "attention_types": [[["global", "local"], 2]], "embed_dropout": 0, "hidden_size": 2560,
    "intermediate_size": null, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 2048,
    "model_type": "gpt_neo", "num_heads": 20, "num_layers": 32, "resid_dropout": 0, "summary_type":
    "cls_index", "task_specific_params": {"text-generation": {"do_sample": true}}, "use_cache": true,
    "vocab_size": 50257, "window_size": 256})";
  const ModelSpec m = good_config(text);
  EXPECT_EQ(m.parameters(), 2'651'307'520);
  EXPECT_EQ(m.sliding_window, 256);
  std::string global = text;
  for (std::size_t at = 0; (at = global.find("\"local\"")) != std::string::npos;)
    global.replace(at, 7, "\"global\"");
  EXPECT_EQ(good_config(global).sliding_window, 0);
}

TEST(HuggingFace, SlidingWindows) {
  EXPECT_EQ(good_config(with(R"("sliding_window": 4096)", "mistral")).sliding_window, 4096);
  EXPECT_EQ(good_config(with(R"("sliding_window": null)", "mistral")).sliding_window, 0);
  EXPECT_EQ(good_config(with(R"("rms_norm_eps": 1e-5)", "mistral")).sliding_window, 4096);  // the default
  EXPECT_EQ(good_config(with(R"("sliding_window": 128)")).sliding_window, 128);
  EXPECT_EQ(good_config(kLlama).sliding_window, 0);
  const auto qwen = [](const std::string& keys) {
    return good_config(with("\"sliding_window\": 512, " + keys, "qwen2")).sliding_window;
  };
  EXPECT_EQ(qwen(R"("use_sliding_window": false)"), 0);
  EXPECT_EQ(qwen(R"("use_sliding_window": true, "max_window_layers": 3)"), 512);  // of 6 layers
  EXPECT_EQ(qwen(R"("use_sliding_window": true, "max_window_layers": 6)"), 0);
  EXPECT_EQ(qwen(R"("layer_types": ["full_attention", "full_attention"])"), 0);
  EXPECT_EQ(qwen(R"("layer_types": ["full_attention", "sliding_attention"])"), 512);
  EXPECT_TRUE(reports(bad_config(with(R"("layer_types": ["linear_attention"])", "qwen2")),
                      "config.json:12:1: layer_types", "unsupported kind of attention"));
}

TEST(HuggingFace, ActivationsByName) {
  EXPECT_EQ(good_config(with(R"("hidden_act": "silu")")).mlp, MlpKind::swiglu);
  EXPECT_EQ(good_config(with(R"("hidden_act": "gelu_pytorch_tanh")")).mlp, MlpKind::geglu);
  EXPECT_EQ(good_config(with(R"("hidden_act": "relu")")).mlp, MlpKind::reglu);
  EXPECT_EQ(good_config(neox(R"("hidden_act": "relu")")).mlp, MlpKind::relu);
  EXPECT_TRUE(reports(bad_config(with(R"("hidden_act": "laplace")")), "config.json:12:1: hidden_act",
                      "unsupported activation \"laplace\"; supported: gelu,"));
}

TEST(HuggingFace, DropoutsMayDiffer) {
  const std::string gpt2 = R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4,
    "vocab_size": 10, "n_positions": 8)";
  const ModelSpec m = good_config(gpt2 + R"(, "attn_pdrop": 0.0})");
  EXPECT_EQ(m.dropout, 0.1);  // the default
  EXPECT_EQ(m.attention_dropout, 0.0);
  EXPECT_FALSE(m.embedding_dropout.has_value());
  EXPECT_EQ(good_config(with(R"("attention_dropout": 0.2)")).attention_dropout, 0.2);
  EXPECT_FALSE(good_config(with(R"("attention_dropout": 0.0)")).attention_dropout.has_value());
}

TEST(HuggingFace, WhatIsNotModelledIsRefusedByName) {
  const auto refuses = [](const std::string& key, const std::string& value, const std::string& gist) {
    const Diagnostics found = bad_config(with("\"" + key + "\": " + value));
    return reports(found, "config.json:12:1: " + key, gist);
  };
  EXPECT_TRUE(refuses("quantization_config", R"({"bits": 4})", "before quantisation"));
  EXPECT_TRUE(refuses("num_local_experts", "8", "experts are not modelled"));
  EXPECT_TRUE(refuses("architectures", R"(["LlamaForSequenceClassification"])", "...ForCausalLM"));
  EXPECT_TRUE(refuses("vision_config", R"({"hidden_size": 3})", "language model alone"));
  EXPECT_TRUE(refuses("attention_biass", "true", "unknown key; did you mean \"attention_bias\"?"));
  EXPECT_TRUE(refuses("window_pattern_of_mine", "3", "unknown key; whether it changes time or memory"));
  // Every refused key is accepted where it is switched off, and null is the same as absent.
  for (const RefusedKey& refused : refused_keys()) {
    const std::string key = "\"" + std::string(refused.key) + "\": ";
    for (const char* off : {"null", "false", "0", "{}"}) {
      if (refused.key.ends_with("_bias") && std::string(off) != "false") continue;
      EXPECT_EQ(good_config(with(key + off)).parameters(), good_config(kLlama).parameters()) << key << off;
    }
  }
  good_config(with(R"("window_pattern_of_mine": null)"));
}

TEST(HuggingFace, IdleKeysStandOnceAndChangeNothing) {
  std::set<std::string_view> seen;
  for (const IdleKeys& group : idle_keys()) {
    for (const std::string_view key : group.keys) {
      EXPECT_TRUE(seen.insert(key).second) << key;
      EXPECT_TRUE(refusal_of(key).empty()) << key;
      EXPECT_TRUE(is_idle_key(key));
      if (std::string(kLlama).find(key) != std::string::npos) continue;
      EXPECT_EQ(good_config(with("\"" + std::string(key) + "\": 1")).parameters(),
                good_config(kLlama).parameters());
    }
  }
  EXPECT_TRUE(is_idle_key("_attn_implementation_autoset"));
}

}  // namespace
}  // namespace shardscape::yaml
