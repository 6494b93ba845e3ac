// Are the configs of models with experts read as their families mean them?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sweep/yaml/huggingface.h"
#include "tests/unit/yaml/problems_of.h"

namespace shardscape::yaml {
namespace {

ModelSpec experts_config(const std::string& text) {
  Diagnostics diagnostics;
  const auto model = read_huggingface(text, "given", "config.json", diagnostics);
  EXPECT_TRUE(model.has_value()) << diagnostics.to_string();
  return model.value_or(ModelSpec());
}

Diagnostics bad_experts(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_huggingface(text, "given", "config.json", diagnostics).has_value());
  return diagnostics;
}

/// Whether the config is refused for that key, which the message is about.
bool refused_for(const std::string& text, const std::string& key, const std::string& gist) {
  const Diagnostics found = bad_experts(text);
  return std::ranges::any_of(found.list(), [&](const Diagnostic& problem) {
    return problem.path == key && problem.message.find(gist) != std::string::npos;
  });
}

const char* const kDeepSeekV3 = R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "aux_loss_alpha": 0.001, "bos_token_id": 0, "ep_size": 1, "first_k_dense_replace": 3,
    "hidden_act": "silu", "hidden_size": 7168, "initializer_range": 0.02, "intermediate_size": 18432,
    "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256,
    "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8,
    "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "quantization_config": {"quant_method": "fp8"},
    "rms_norm_eps": 1e-06, "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
    "seq_aux": true, "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
    "use_cache": true, "v_head_dim": 128, "vocab_size": 129280})";

TEST(HuggingFaceExperts, DeepSeekV3) {
  const ModelSpec m = experts_config(kDeepSeekV3);
  ASSERT_TRUE(m.moe && m.latent);
  EXPECT_EQ(m.moe->router, RouterKind::sigmoid);
  EXPECT_TRUE(m.moe->router_bias && m.moe->normalise_top_k);
  EXPECT_EQ(m.moe->mtp_layers, 1);
  EXPECT_EQ(m.moe->expert_groups, 8);
  EXPECT_EQ(m.moe->top_groups, 4);
  EXPECT_EQ(m.expert_layers(), 58);
  EXPECT_EQ(m.latent->cached(), 576);
  // The checkpoint without its second token's module.
  EXPECT_EQ(m.parameters(), 671'026'419'200.0);
}

// Configs of the families, shortened to what matters, and what the checkpoints hold.
TEST(HuggingFaceExperts, FamiliesHaveTheParametersOfTheirCheckpoints) {
  struct Published {
    double parameters;
    const char* config;
  };
  for (
      const auto& [parameters, config] : {
          Published{46'702'792'704.0, R"({"model_type": "mixtral", "hidden_size": 4096,
               "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
               "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8,
               "num_experts_per_tok": 2, "sliding_window": null, "router_jitter_noise": 0.0})"},
          Published{15'706'484'224.0, R"({"model_type": "deepseek_v2", "hidden_size": 2048,
               "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
               "intermediate_size": 10944, "vocab_size": 102400, "n_routed_experts": 64,
               "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
               "first_k_dense_replace": 1, "moe_layer_freq": 1, "q_lora_rank": null, "kv_lora_rank": 512,
               "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
               "scoring_func": "softmax", "topk_method": "greedy"})"},
          Published{30'532'122'624.0, R"({"model_type": "qwen3_moe", "hidden_size": 2048,
               "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
               "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936, "num_experts": 128,
               "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": true,
               "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": false,
               "sliding_window": null, "max_window_layers": 48, "attention_bias": false})"},
          // Qwen1.5-MoE-A2.7B. A layer: QKV with biases and the output 4 h h + 3 h, experts 60 x 3 h 1,408, the shared
          // one 3 h 5,632, router 60 h, gate h, norms 2 h, h = 2,048; 24 of them, two tables and a norm.
          Published{14'315'784'192.0, R"({"model_type": "qwen2_moe", "hidden_size": 2048,
               "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
               "intermediate_size": 5632, "vocab_size": 151936, "num_experts": 60,
               "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "norm_topk_prob": false,
               "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1,
               "output_router_logits": false, "router_aux_loss_coef": 0.001, "use_sliding_window": false,
               "sliding_window": 32768, "max_window_layers": 21, "tie_word_embeddings": false})"},
          Published{20'914'757'184.0, R"({"model_type": "gpt_oss", "hidden_size": 2880,
               "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
               "intermediate_size": 2880, "vocab_size": 201088, "num_local_experts": 32,
               "num_experts_per_tok": 4, "sliding_window": 128, "attention_bias": true, "swiglu_limit": 7.0,
               "quantization_config": {"quant_method": "mxfp4"}, "initial_context_length": 4096})"},
          Published{352'797'829'024.0, R"({"model_type": "glm4_moe", "hidden_size": 5120,
               "num_hidden_layers": 92, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
               "intermediate_size": 12288, "vocab_size": 151552, "n_routed_experts": 160,
               "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 1536,
               "first_k_dense_replace": 3, "attention_bias": true, "use_qk_norm": true,
               "partial_rotary_factor": 0.5, "num_nextn_predict_layers": 1, "norm_topk_prob": true})"},
          // The language model of Llama 4 Maverick.
          Published{400'711'848'960.0, R"({"model_type": "llama4_text", "hidden_size": 5120,
               "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
               "intermediate_size": 8192, "intermediate_size_mlp": 16384, "vocab_size": 202048,
               "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
               "attention_chunk_size": 8192, "use_qk_norm": false, "no_rope_layers": [1, 1, 1, 0],
               "attn_temperature_tuning": true, "floor_scale": 8192, "attn_scale": 0.1})"},
          Published{315'684'820'992.0, R"({"model_type": "grok-1", "hidden_size": 6144,
               "num_hidden_layers": 64, "num_attention_heads": 48, "num_key_value_heads": 8,
               "intermediate_size": 32768, "vocab_size": 131072, "num_experts": 8,
               "num_experts_per_tok": 2, "max_attn_value": 30.0, "tie_word_embeddings": true,
               "attn_output_multiplier": 0.088, "embedding_multiplier_scale": 78.4})"},
          Published{1'026'408'232'448.0, R"({"model_type": "kimi_k2", "hidden_size": 7168,
               "num_hidden_layers": 61, "num_attention_heads": 64, "num_key_value_heads": 64,
               "intermediate_size": 18432, "vocab_size": 163840, "n_routed_experts": 384,
               "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
               "first_k_dense_replace": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
               "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
               "num_nextn_predict_layers": 0})"},
      }) {
    const ModelSpec m = experts_config(config);
    EXPECT_EQ(m.parameters(), parameters) << config;
    EXPECT_TRUE(m.moe.has_value()) << config;
  }
}

TEST(HuggingFaceExperts, WindowsAndLayersOfTheirFamilies) {
  const ModelSpec oss = experts_config(R"({"model_type": "gpt_oss", "hidden_size": 64, "num_hidden_layers": 4,
      "num_attention_heads": 4, "intermediate_size": 32, "vocab_size": 10, "num_local_experts": 8,
      "num_experts_per_tok": 2})");
  EXPECT_EQ(oss.sliding_window, 128);
  EXPECT_EQ(oss.window_pattern, "LG");
  EXPECT_TRUE(oss.attention_sinks && oss.linear_bias && oss.moe->router_bias);
  EXPECT_EQ(oss.ffn_hidden, 32);
  const std::string llama = R"({"model_type": "llama4_text", "hidden_size": 64, "num_hidden_layers": 8,
      "num_attention_heads": 4, "intermediate_size": 32, "vocab_size": 10, "num_local_experts": 8,
      "num_experts_per_tok": 1, "intermediate_size_mlp": 96)";
  const ModelSpec scout = experts_config(llama + "}");
  EXPECT_EQ(scout.window_pattern, "LLLG");
  EXPECT_EQ(scout.sliding_window, 8192);
  EXPECT_EQ(scout.ffn_hidden, 32);  // no layer has the other width
  const ModelSpec maverick = experts_config(llama + R"(, "interleave_moe_layer_step": 2})");
  EXPECT_EQ(maverick.ffn_hidden, 96);
  EXPECT_EQ(maverick.expert_layers(), 4);
  EXPECT_TRUE(maverick.moe->in_layer(1) && !maverick.moe->in_layer(0));
}

TEST(HuggingFaceExperts, ProblemsNameTheConfigsKey) {
  std::string text = kDeepSeekV3;
  text.replace(text.find("\"num_experts_per_tok\": 8"), 24, "\"num_experts_per_tok\": 257");
  EXPECT_TRUE(refused_for(text, "num_experts_per_tok", "must be at most experts (256)"));
  text = kDeepSeekV3;
  text.replace(text.find("\"moe_layer_freq\": 1"), 19, "\"moe_layer_freq\": 2");
  EXPECT_TRUE(refused_for(text, "moe_layer_freq", "only 1 is supported"));
  text = kDeepSeekV3;
  text.replace(text.find("\"kv_lora_rank\": 512"), 19, "\"kv_lora_ranks\": 512");
  EXPECT_TRUE(refused_for(text, "kv_lora_rank", "missing"));
  EXPECT_TRUE(refused_for(R"({"model_type": "olmoe"})", "model_type", "of a kind that is not modelled"));
}

// Configs of families with keys of their own, as their checkpoints have them but for tokens, against the parameters that
// the authors publish.
TEST(HuggingFaceExperts, FamiliesWithKeysOfTheirOwn) {
  const auto billions = [](const ModelSpec& m) { return m.parameters() / 1e9; };
  const ModelSpec minimax =
      experts_config(R"({"architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2",
    "attention_dropout": 0.0, "attn_type_list": [1, 1], "head_dim": 128, "hidden_act": "silu", "hidden_size": 3072,
    "intermediate_size": 1536, "max_position_embeddings": 196608, "mtp_transformer_layers": 1,
    "num_attention_heads": 48, "num_experts_per_tok": 8, "num_hidden_layers": 62, "num_key_value_heads": 8,
    "num_local_experts": 256, "num_mtp_modules": 3, "qk_norm_type": "per_layer", "rms_norm_eps": 1e-06,
    "rope_theta": 5000000, "rotary_dim": 64, "scoring_func": "sigmoid", "shared_intermediate_size": 0,
    "tie_word_embeddings": false, "use_mtp": true, "use_qk_norm": true, "use_routing_bias": true, "vocab_size": 200064,
    "quantization_config": {"activation_scheme": "dynamic", "quant_method": "fp8", "weight_block_size": [128, 128]}})");
  EXPECT_NEAR(billions(minimax), 230, 3);
  EXPECT_NEAR(minimax.active_parameters() / 1e9, 10, 0.7);
  EXPECT_EQ(minimax.rotary_fraction, 0.5);
  EXPECT_EQ(minimax.moe->mtp_layers, 3);
  EXPECT_TRUE(minimax.fp8_block_scales);
  const ModelSpec ernie =
      experts_config(R"({"architectures": ["Ernie4_5_MoeForCausalLM"], "model_type": "ernie4_5_moe",
    "hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 12288, "moe_capacity": [64, 64, 64],
    "moe_intermediate_size": 1536, "moe_k": 6, "moe_layer_interval": 1, "moe_layer_start_index": 1,
    "moe_layer_end_index": 27, "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_use_aux_free": true,
    "num_attention_heads": 20, "num_hidden_layers": 28, "num_key_value_heads": 4, "head_dim": 128,
    "tie_word_embeddings": true, "use_bias": false, "use_rmsnorm": true, "vocab_size": 103424})");
  EXPECT_NEAR(billions(ernie), 21, 1);
  EXPECT_FALSE(ernie.fp8_block_scales);
  EXPECT_EQ(ernie.moe->first_dense_layers, 1);
  const ModelSpec ling =
      experts_config(R"({"architectures": ["BailingMoeV2ForCausalLM"], "model_type": "bailing_moe_v2",
    "attention_dropout": 0.0, "embedding_dropout": 0.0, "first_k_dense_replace": 1, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 5120, "moe_intermediate_size": 512,
    "moe_router_enable_expert_bias": true, "moe_shared_expert_intermediate_size": 512, "n_group": 8,
    "norm_topk_prob": true, "num_attention_heads": 16, "num_experts": 256, "num_experts_per_tok": 8,
    "num_hidden_layers": 20, "num_key_value_heads": 4, "num_nextn_predict_layers": 0, "num_shared_experts": 1,
    "output_dropout": 0.0, "partial_rotary_factor": 0.5, "routed_scaling_factor": 2.5, "score_function": "sigmoid",
    "tie_word_embeddings": false, "topk_group": 4, "use_bias": false, "use_qk_norm": true, "use_qkv_bias": false,
    "use_rmsnorm": true, "vocab_size": 157184})");
  EXPECT_NEAR(billions(ling), 16, 0.7);
  EXPECT_EQ(ling.moe->router, RouterKind::sigmoid);
  EXPECT_TRUE(ling.moe->router_bias);
  EXPECT_EQ(ling.moe->expert_groups, 8);
  const ModelSpec dbrx = experts_config(R"({"architectures": ["DbrxForCausalLM"], "model_type": "dbrx",
    "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": "", "rope_theta": 500000}, "d_model": 6144,
    "emb_pdrop": 0.0, "ffn_config": {"ffn_hidden_size": 10752, "model_type": "", "moe_num_experts": 16, "moe_top_k": 4},
    "max_seq_len": 32768, "n_heads": 48, "n_layers": 40, "resid_pdrop": 0.0, "tie_word_embeddings": false,
    "vocab_size": 100352})");
  EXPECT_NEAR(billions(dbrx), 132, 1);
  EXPECT_NEAR(dbrx.active_parameters() / 1e9, 36, 1);
  EXPECT_EQ(dbrx.kv_heads, 8);
  EXPECT_TRUE(
      refused_for(R"({"model_type": "dbrx", "d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 100,
    "ffn_config": {"moe_num_experts": 4, "moe_top_k": 1}})",
                  "ffn_config", "ffn_hidden_size is missing"));
  const ModelSpec hunyuan =
      experts_config(R"({"architectures": ["HunYuanMoEV1ForCausalLM"], "model_type": "hunyuan_v1_moe",
    "attention_bias": false, "attention_head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 3072, "moe_intermediate_size": [3072, 3072], "moe_topk": [8, 8], "mlp_bias": false,
    "num_attention_heads": 32, "num_experts": 64, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "num_shared_expert": [1, 1], "tie_word_embeddings": true, "use_cla": false, "use_mixed_mlp_moe": true,
    "use_qk_norm": true, "vocab_size": 128167})");
  EXPECT_NEAR(billions(hunyuan), 80, 1);
  EXPECT_NEAR(hunyuan.active_parameters() / 1e9, 13, 1);
}

TEST(HuggingFaceExperts, FirstLayersWithoutExperts) {
  const std::string qwen = R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 256,
    "moe_intermediate_size": 32, "num_attention_heads": 4, "num_experts": 8, "num_experts_per_tok": 2,
    "num_hidden_layers": 6, "num_key_value_heads": 2, "vocab_size": 100, "mlp_only_layers": )";
  EXPECT_EQ(experts_config(qwen + "[]}").moe->first_dense_layers, 0);
  const ModelSpec two = experts_config(qwen + "[0, 1]}");
  EXPECT_EQ(two.moe->first_dense_layers, 2);
  EXPECT_EQ(two.ffn_hidden, 256);
  for (const char* list : {"[1]", "[0, 2]", "[1, 0]", "3", "[\"0\"]", "[0, 0]"})
    EXPECT_TRUE(refused_for(qwen + list + "}", "mlp_only_layers", "only the first layers")) << list;
}

// Of a model that also sees the language model is read; a checkpoint's fp8 is the study's choice, integers are not.
TEST(HuggingFaceExperts, LanguageModelsInsideOthers) {
  const ModelSpec gemma =
      experts_config(R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
    "image_token_index": 262144, "mm_tokens_per_image": 256, "text_config": {"hidden_size": 2560,
    "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024},
    "vision_config": {"hidden_size": 1152}})");
  EXPECT_NEAR(gemma.parameters() / 1e9, 3.88, 0.02);
  EXPECT_EQ(gemma.kv_heads, 4);
  const ModelSpec llama =
      experts_config(R"({"architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4",
    "text_config": {"model_type": "llama4_text", "attention_bias": false, "attention_chunk_size": 8192,
    "attn_scale": 0.1, "attn_temperature_tuning": 4, "floor_scale": 8192, "for_llm_compressor": false, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 5120, "interleave_moe_layer_step": 1, "intermediate_size": 8192,
    "intermediate_size_mlp": 16384, "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48,
    "num_key_value_heads": 8, "num_local_experts": 16, "use_qk_norm": true, "vocab_size": 202048},
    "tie_word_embeddings": false, "vision_config": {}})");
  EXPECT_NEAR(llama.parameters() / 1e9, 107.8, 0.5);
  EXPECT_TRUE(refused_for(R"({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model"}})",
                          "model_type", "unsupported family"));
  const std::string plain = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 256,
    "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100, "quantization_config": )";
  for (const char* format : {R"({"quant_method": "fp8"})", R"({"quant_method": "mxfp4"})",
                             R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})",
                             R"({"quant_method": "compressed-tensors", "format": "float-quantized"})"})
    EXPECT_EQ(experts_config(plain + format + "}").layers, 2) << format;
  for (const char* format : {R"({"quant_method": "gptq", "bits": 4})", R"({"quant_method": "awq"})", "7"})
    EXPECT_TRUE(refused_for(plain + format + "}", "quantization_config", "before quantisation")) << format;
}

}  // namespace
}  // namespace shardscape::yaml
