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
  EXPECT_TRUE(refused_for(R"({"model_type": "dbrx"})", "model_type", "of a kind that is not modelled"));
}

}  // namespace
}  // namespace shardscape::yaml
