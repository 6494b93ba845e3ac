// Are configurations of each model family of Hugging Face read with the right defaults, and is what is not modelled
// refused?
#include "sweep/yaml/huggingface.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sweep/yaml/huggingface_config.h"
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

TEST(HuggingFace, DeepNestingIsRefusedBeforeAnythingRecurses) {
  // A million lists in each other fit into a file of the size that is read, and would overflow the stack when copied.
  const std::string deep(1'000'000, '[');
  const Diagnostics problems =
      bad_config("{\"model_type\": \"llama\", \"x\": " + deep + std::string(deep.size(), ']') + "}");
  ASSERT_EQ(problems.list().size(), 1U);
  EXPECT_NE(problems.list().front().message.find("nested more than 64 deep"), std::string::npos);
  // Brackets within texts nest nothing.
  const std::string text = kLlama;
  good_config(text.substr(0, text.size() - 1) + R"(, "_name_or_path": "a\")" + std::string(100, '[') + "\"}");
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

TEST(HuggingFace, WhatFrameworksAreToldIsRead) {
  const auto llama = [](const std::string& base, const std::string& more) {
    std::string text = with(more);
    return good_config(text.replace(text.find("\"rope_theta\": 10000.0"), 21, base));
  };
  const ModelSpec m = llama(R"("rope_theta": 500000.0)", R"("rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "rope_type": "llama3"})");
  EXPECT_EQ(m.rotary_base, 500'000);
  EXPECT_EQ(m.rotary_scaling, 8);
  EXPECT_EQ(m.norm_epsilon, 1e-5);
  EXPECT_EQ(m.context, 4096);
  EXPECT_EQ(good_config(with(R"("rope_scaling": {"factor": 40, "type": "yarn"})")).rotary_scaling, 0);
  EXPECT_EQ(llama(R"("rope_theta": null)", R"("rope_scaling": null)").rotary_base, 0);  // not known
  EXPECT_EQ(good_config(neox(R"("rotary_emb_base": 10000)")).rotary_base, 10'000);
  EXPECT_EQ(
      llama(R"("rope_parameters": {"rope_theta": 1000000})", R"("tie_word_embeddings": true)").rotary_base,
      1'000'000);
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
  const std::string four = R"("global", "local", "global", "local")",
                    twelve = four + ", " + four + ", " + four;
  const std::string text = R"({"architectures": ["GPTNeoForCausalLM"], "activation_function": "gelu_new",
    "attention_dropout": 0, "attention_layers": [)" +
                           twelve + ", " + twelve + ", " + four + ", " + four + R"(],
    "attention_types": [[["global", "local"], 16]], "embed_dropout": 0, "hidden_size": 2560,
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
  // Some of the 6 layers have a window.
  EXPECT_EQ(qwen(R"("use_sliding_window": true, "max_window_layers": 3)"), 512);
  EXPECT_EQ(qwen(R"("use_sliding_window": true, "max_window_layers": 6)"), 0);
  const auto thrice = [](const std::string& two) {  // of 6 layers
    return R"("layer_types": [)" + two + ", " + two + ", " + two + ']';
  };
  EXPECT_EQ(qwen(thrice(R"("full_attention", "full_attention")")), 0);
  EXPECT_EQ(qwen(thrice(R"("full_attention", "sliding_attention")")), 512);
  for (const auto& [types, kinds] : {std::pair(R"([])", "0"), std::pair(R"("sliding_attention")", "1"),
                                     std::pair(R"(["full_attention", "sliding_attention"])", "2")})
    EXPECT_TRUE(reports(bad_config(with(R"("layer_types": )" + std::string(types), "qwen2")),
                        "config.json:12:1: layer_types",
                        "has " + std::string(kinds) + " kinds of attention for 6 layers"))
        << types;
  EXPECT_TRUE(reports(bad_config(with(R"("layer_types": ["linear_attention"])", "qwen2")),
                      "config.json:12:1: layer_types", "unsupported kind of attention"));
}

TEST(HuggingFace, KeysOfAnObjectAreThereOnce) {
  // Line and column of both places; keys of other objects, texts and lists are none of them.
  const Diagnostics twice =
      bad_config("{\"hidden_size\": 512,\n \"model_type\": \"llama\",\n  \"hidden_size\" : 8192}");
  EXPECT_TRUE(reports(twice, "config.json:3:3: hidden_size", "duplicate key; first given at 1:2"));
  EXPECT_EQ(twice.list().size(), 1);
  EXPECT_TRUE(reports(bad_config(R"({"rope_scaling": {"factor": 2, "type": "a", "factor": 2}})"),
                      "config.json:1:45: factor", "first given at 1:19"));
  EXPECT_EQ(good_config(with(R"("rope_scaling": null, "_name_or_path": "\"hidden_size\": ", "id2label":
                             {"hidden_size": "hidden_size"})"))
                .hidden,
            512);
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
  EXPECT_TRUE(refuses("num_local_experts", "8", "this family has no experts"));
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

// The shapes that the published configs give, shortened to what matters, and what the checkpoints hold.
struct Checkpoint {
  double parameters;
  const char* config;
};
constexpr Checkpoint kCheckpoints[] = {
    {32'762'123'264.0,
     R"({"model_type": "qwen3", "hidden_size": 5120, "num_hidden_layers": 64,
               "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
               "intermediate_size": 25600, "max_window_layers": 64, "use_sliding_window": false,
               "sliding_window": null, "attention_bias": false, "tie_word_embeddings": false})"},
    {3'821'079'552.0, R"({"model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 32,
               "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064,
               "intermediate_size": 8192, "sliding_window": 2047, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
               "original_max_position_embeddings": 4096, "rope_scaling": null})"},
    {2'779'683'840.0, R"({"model_type": "phi", "hidden_size": 2560, "num_hidden_layers": 32,
               "num_attention_heads": 32, "vocab_size": 51200, "intermediate_size": 10240,
               "hidden_act": "gelu_new", "partial_rotary_factor": 0.4, "qk_layernorm": false,
               "embd_pdrop": 0.0, "resid_pdrop": 0.1})"},
    {2'506'172'416.0, R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18,
               "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000,
               "intermediate_size": 16384, "hidden_act": "gelu", "hidden_activation": null})"},
    {27'227'128'320.0, R"({"model_type": "gemma2", "hidden_size": 4608,
               "num_hidden_layers": 46, "num_attention_heads": 32, "num_key_value_heads": 16,
               "head_dim": 128, "vocab_size": 256000, "intermediate_size": 36864, "sliding_window": 4096,
               "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
               "query_pre_attn_scalar": 144, "cache_implementation": "hybrid"})"},
    {999'885'952.0, R"({"model_type": "gemma3_text", "hidden_size": 1152,
               "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
               "vocab_size": 262144, "intermediate_size": 6912, "sliding_window": 512,
               "sliding_window_pattern": 6, "attn_logit_softcapping": null,
               "hidden_activation": "gelu_pytorch_tanh", "rope_local_base_freq": 10000})"},
    {7'298'617'344.0, R"({"model_type": "olmo2", "hidden_size": 4096, "num_hidden_layers": 32,
               "num_attention_heads": 32, "vocab_size": 100352, "intermediate_size": 11008,
               "attention_bias": false, "tie_word_embeddings": false})"},
    {7'737'708'544.0, R"({"model_type": "internlm2", "hidden_size": 4096,
               "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
               "vocab_size": 92544, "intermediate_size": 14336, "bias": false})"},
    {6'921'720'704.0, R"({"model_type": "falcon", "hidden_size": 4544,
               "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024, "alibi": false,
               "bias": false, "multi_query": true, "new_decoder_architecture": false, "parallel_attn": true,
               "apply_residual_connection_post_layernorm": false})"},
    {41'303'293'952.0, R"({"model_type": "falcon", "hidden_size": 8192,
               "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024,
               "bias": false, "new_decoder_architecture": true, "parallel_attn": true})"},
    // Falcon-RW-1B: 24 x (12 x 2048^2 + 13 x 2048) + 50304 x 2048 + 2 x 2048
    {1'311'625'216.0, R"({"model_type": "falcon", "hidden_size": 2048, "n_layer": 24,
               "n_head": 32, "vocab_size": 50304, "alibi": true, "bias": true, "multi_query": false,
               "parallel_attn": false})"},
    {125'239'296.0, R"({"model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12,
               "num_attention_heads": 12, "ffn_dim": 3072, "vocab_size": 50272, "dropout": 0.1,
               "max_position_embeddings": 2048, "word_embed_proj_dim": 768, "layerdrop": 0.0,
               "do_layer_norm_before": true, "activation_function": "relu", "init_std": 0.02})"},
    {176'247'271'424.0, R"({"model_type": "bloom", "hidden_size": 14336, "n_layer": 70,
               "num_attention_heads": 112, "vocab_size": 250880, "slow_but_exact": false,
               "bias_dropout_fusion": true, "offset_alibi": 100, "n_inner": null})"},
    {559'214'592.0, R"({"model_type": "bloom", "n_embed": 1024, "n_layer": 24,
               "num_attention_heads": 16, "vocab_size": 250880})"},
    {15'957'889'024.0, R"({"model_type": "starcoder2", "hidden_size": 6144,
               "num_hidden_layers": 40, "num_attention_heads": 48, "num_key_value_heads": 4,
               "vocab_size": 49152, "intermediate_size": 24576, "use_bias": true, "sliding_window": 4096,
               "hidden_act": "gelu_pytorch_tanh", "norm_type": "layer_norm", "mlp_type": "default",
               "tie_word_embeddings": false})"},
    {6'050'882'784.0, R"({"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16,
               "vocab_size": 50400, "n_positions": 2048, "rotary_dim": 64, "rotary": true,
               "tie_word_embeddings": false, "activation_function": "gelu_new"})"},
    {6'649'286'656.0, R"({"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32,
               "expansion_ratio": 4, "vocab_size": 50432, "max_seq_len": 2048, "no_bias": true,
               "learned_pos_emb": false, "norm_type": "low_precision_layernorm", "resid_pdrop": 0,
               "attn_config": {"alibi": true, "attn_pdrop": 0, "qk_ln": false, "attn_impl": "torch"}})"},
    {15'517'456'384.0, R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40,
               "n_head": 48, "n_inner": 24576, "vocab_size": 49152, "n_positions": 8192,
               "multi_query": true})"},
    {1'644'515'328.0, R"({"model_type": "stablelm", "hidden_size": 2048,
               "num_hidden_layers": 24, "num_attention_heads": 32, "vocab_size": 100352,
               "intermediate_size": 5632, "use_qkv_bias": true, "use_parallel_residual": false})"},
    {34'980'831'232.0, R"({"model_type": "cohere", "hidden_size": 8192,
               "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64,
               "vocab_size": 256000, "intermediate_size": 22528, "logit_scale": 0.0625,
               "use_qk_norm": false})"},
    // Nemotron-4 15B (Parmar et al. 2024): 12.5 B and 3.1 B of embeddings
    {15'628'775'424.0, R"({"model_type": "nemotron", "hidden_size": 6144,
               "num_hidden_layers": 32, "num_attention_heads": 48, "num_key_value_heads": 8,
               "vocab_size": 256000, "intermediate_size": 24576, "hidden_act": "relu2",
               "partial_rotary_factor": 0.5})"},
};

TEST(HuggingFace, FamiliesHaveTheParametersOfTheirCheckpoints) {
  for (const auto& [parameters, config] : kCheckpoints)
    EXPECT_EQ(good_config(config).parameters(), parameters) << config;
}

TEST(HuggingFace, FalconHasThreeKinds) {
  const auto falcon = [](const std::string& keys) {
    return good_config(R"({"model_type": "falcon", "hidden_size": 512, "num_hidden_layers": 2,
      "num_attention_heads": 8, "num_kv_heads": 2, "vocab_size": 100, )" +
                       keys + "}");
  };
  const ModelSpec small = falcon(R"("multi_query": true)");
  EXPECT_TRUE(small.parallel_residual && small.shared_norm);
  EXPECT_EQ(small.kv_heads, 1);
  EXPECT_EQ(small.position, PositionKind::rotary);
  const ModelSpec large = falcon(R"("new_decoder_architecture": true)");
  EXPECT_TRUE(large.parallel_residual);
  EXPECT_FALSE(large.shared_norm);
  EXPECT_EQ(large.kv_heads, 2);
  EXPECT_TRUE(falcon(R"("new_decoder_architecture": true, "num_ln_in_parallel_attn": 1)").shared_norm);
  const ModelSpec refined = falcon(R"("alibi": true, "bias": true, "multi_query": false,
      "parallel_attn": false)");
  EXPECT_FALSE(refined.parallel_residual || refined.shared_norm);
  EXPECT_EQ(refined.kv_heads, 8);
  EXPECT_EQ(refined.position, PositionKind::alibi);
  EXPECT_TRUE(refined.linear_bias);
}

TEST(HuggingFace, WindowsByLayer) {
  const auto gemma = [](const std::string& family, const std::string& keys) {
    return good_config(R"({"hidden_size": 512, "num_hidden_layers": 12, "num_attention_heads": 2,
      "intermediate_size": 512, "vocab_size": 100, "sliding_window": 64, "model_type": ")" +
                       family + "\"" + keys + "}");
  };
  EXPECT_EQ(gemma("gemma2", "").window_pattern, "LG");
  EXPECT_EQ(gemma("gemma3_text", "").window_pattern, "LLLLLG");
  EXPECT_EQ(gemma("gemma3_text", R"(, "sliding_window_pattern": 4)").window_pattern, "LLLG");
  EXPECT_EQ(gemma("gemma3_text", R"(, "layer_types": ["full_attention", "sliding_attention", "full_attention",
              "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention",
              "full_attention", "sliding_attention", "full_attention", "sliding_attention"])")
                .window_pattern,
            "GL");
  EXPECT_EQ(gemma("mistral", "").window_pattern, "");
  const ModelSpec qwen = gemma("qwen3", R"(, "use_sliding_window": true, "max_window_layers": 9)");
  EXPECT_EQ(qwen.window_pattern, "GGGGGGGGGLLL");
  EXPECT_EQ(qwen.sliding_window, 64);
  EXPECT_TRUE(gemma("gemma2", "").attention_soft_cap && gemma("gemma2", "").logit_soft_cap);
  EXPECT_FALSE(gemma("gemma2", R"(, "attn_logit_softcapping": null)").attention_soft_cap);
  EXPECT_FALSE(gemma("gemma3_text", "").attention_soft_cap);
}

TEST(HuggingFace, FamiliesThatAreNotModelledSayWhy) {
  const auto problem = [](const std::string& family, const std::string& gist) {
    return reports(bad_config("{\"model_type\": \"" + family + "\"}"), "config.json:1:2: model_type", gist);
  };
  EXPECT_TRUE(
      problem("olmoe", "has experts of a kind that is not modelled; supported families: llama, mistral"));
  EXPECT_TRUE(problem("gemma3", "give the config of the language model alone"));  // without one inside
  EXPECT_TRUE(problem("mamba", "states in place of attention"));
  EXPECT_TRUE(problem("deepseek_v9", "unsupported family"));
  EXPECT_TRUE(reports(bad_config(R"({"model_type": "opt", "hidden_size": 512, "num_hidden_layers": 24,
      "num_attention_heads": 16, "ffn_dim": 4096, "vocab_size": 50272, "do_layer_norm_before": false,
      "word_embed_proj_dim": 256})"),
                      "config.json:2:72: do_layer_norm_before", "must be true"));
  EXPECT_TRUE(reports(bad_config(R"({"model_type": "mpt", "d_model": 64, "n_layers": 2, "n_heads": 2,
      "vocab_size": 50, "norm_type": "rmsnorm"})"),
                      "config.json:2:25: norm_type", "supported: layernorm"));
}

}  // namespace
}  // namespace shardscape::yaml
