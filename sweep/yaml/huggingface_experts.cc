// Readers of families with experts (Mixtral, Qwen, DeepSeek, gpt-oss, GLM, Llama 4): each names its family's keys and
// defaults.
#include "sweep/yaml/huggingface_experts.h"

#include <algorithm>
#include <string>

#include "sweep/yaml/huggingface_parts.h"

namespace shardscape::yaml::huggingface {

namespace {

using Config = HuggingFaceConfig;

/// The names of the keys with the shapes of experts; null where a family has no such key.
struct ExpertKeys {
  HuggingFaceNames experts = "n_routed_experts";
  HuggingFaceNames top_k = "num_experts_per_tok";
  const char* width = "moe_intermediate_size";
  const char* shared = nullptr;
  const char* first_dense = nullptr;
};

void read_experts(Config& config, const ExpertKeys& keys, ModelSpec& m) {
  MixtureOfExperts& moe = m.moe.emplace();
  config.required("moe.experts", keys.experts, moe.experts);
  config.required("moe.top_k", keys.top_k, moe.top_k);
  config.required("moe.expert_ffn_hidden", keys.width, moe.expert_ffn_hidden);
  if (keys.shared != nullptr) config.optional("moe.shared_experts", keys.shared, moe.shared_experts);
  if (keys.first_dense != nullptr)
    config.optional("moe.first_dense_layers", keys.first_dense, moe.first_dense_layers);
  const bool small =
      moe.shared_experts >= 0 && moe.shared_experts <= 1'000'000 && moe.expert_ffn_hidden <= 1'000'000'000;
  if (small) moe.shared_ffn_hidden = moe.shared_experts * moe.expert_ffn_hidden;
}

/// Where all layers have experts, the width of other layers means nothing and is set to the experts'.
void settle_width(ModelSpec& m) {
  if (m.moe->everywhere()) m.ffn_hidden = m.moe->expert_ffn_hidden;
}

/// Ignores the format of the published checkpoint's weights: the study chooses it.
void published_quantised(Config& config) { (void)config.given("quantization_config"); }

}  // namespace

void read_mixtral(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  read_window(config, 0, "", m);
  read_experts(config, {"num_local_experts", "num_experts_per_tok", "intermediate_size"}, m);
  m.moe->normalise_top_k = true;
  settle_width(m);
}

void read_grok(Config& config, ModelSpec& m) {
  read_shapes(config, {}, m);
  grouped_queries(config, m);
  tied(config, true, m);
  gated(config, "hidden_act", MlpKind::gelu, m);
  m.norm = NormKind::rmsnorm;
  m.norm_place = NormPlace::both;
  rotary(config, "partial_rotary_factor", 1, m);
  double cap = 30;
  config.number("", "max_attn_value", cap);
  m.attention_soft_cap = cap != 0;
  read_experts(config, {"num_experts", "num_experts_per_tok", "intermediate_size"}, m);
  settle_width(m);
  require_whole_heads(config, "hidden_size", m);
}

void read_qwen3_moe(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  attention_bias(config, m);
  m.qk_norm = QkNorm::per_head;
  read_window(config, 0, "", m);
  bool windowed = false;
  config.flag("use_sliding_window", windowed);
  (void)config.given("max_window_layers");
  if (!windowed) {
    m.sliding_window = 0;
    m.window_pattern.clear();
  }
  read_qwen_experts(config, m);
}

void read_qwen_experts(Config& config, ModelSpec& m) {
  read_experts(config, {"num_experts"}, m);
  config.flag("moe.normalise_top_k", "norm_topk_prob", m.moe->normalise_top_k);
  config.optional("moe.every", "decoder_sparse_step", m.moe->every);
  if (!config.empty("mlp_only_layers"))
    config.problem("mlp_only_layers",
                   "a list of single layers without experts is not modelled; it must be empty");
  if (m.moe->every >= 1) settle_width(m);
}

void read_qwen2_experts(Config& config, ModelSpec& m) {
  read_qwen_experts(config, m);
  m.moe->shared_experts = 1;
  m.moe->shared_gate = true;
  m.moe->shared_ffn_hidden = 5632;  // the family's default
  config.optional("moe.shared_ffn_hidden", "shared_expert_intermediate_size", m.moe->shared_ffn_hidden);
}

namespace {

/// Reads latent attention, and experts behind a few dense layers.
void read_deepseek(Config& config, RouterKind router, ModelSpec& m) {
  read_shapes(config, {}, m);
  std::int64_t kv_heads = m.heads;
  config.optional("", "num_key_value_heads", kv_heads);  // has no effect with latent attention
  LatentAttention& latent = m.latent.emplace();
  config.optional("attention.q_rank", "q_lora_rank", latent.q_rank);
  config.required("attention.kv_rank", "kv_lora_rank", latent.kv_rank);
  config.required("attention.rope_dim", "qk_rope_head_dim", latent.rope_dim);
  config.required("attention.nope_dim", "qk_nope_head_dim", latent.nope_dim);
  config.required("attention.value_dim", "v_head_dim", latent.value_dim);
  m.kv_heads = m.heads;
  m.head_dim = latent.query_dim();
  tied(config, false, m);
  gated(config, "hidden_act", MlpKind::silu, m);
  m.norm = NormKind::rmsnorm;
  rotary(config, "partial_rotary_factor", 1, m);
  read_dropouts(config, {nullptr, "attention_dropout", nullptr}, m);
  attention_bias(config, m);
  ExpertKeys keys;
  keys.shared = "n_shared_experts";
  keys.first_dense = "first_k_dense_replace";
  read_experts(config, keys, m);
  std::int64_t each = 1;
  config.optional("", "moe_layer_freq", each);
  if (each != 1)
    config.problem("moe_layer_freq", "only 1 is supported: experts in all layers but the first ones");
  config.flag("moe.normalise_top_k", "norm_topk_prob", m.moe->normalise_top_k);
  m.moe->router = router;
  const std::string scores = config.text("scoring_func");
  if (scores == "sigmoid") m.moe->router = RouterKind::sigmoid;
  if (scores == "softmax") m.moe->router = RouterKind::softmax;
  const std::string method = config.text("topk_method");
  m.moe->router_bias = method.empty() ? router == RouterKind::sigmoid : method == "noaux_tc";
  config.optional("moe.expert_groups", "n_group", m.moe->expert_groups);
  config.optional("moe.top_groups", "topk_group", m.moe->top_groups);
  config.optional("moe.mtp_layers", "num_nextn_predict_layers", m.moe->mtp_layers);
  published_quantised(config);
  settle_width(m);
}

}  // namespace

void read_deepseek_v2(Config& config, ModelSpec& m) { read_deepseek(config, RouterKind::softmax, m); }

void read_deepseek_v3(Config& config, ModelSpec& m) { read_deepseek(config, RouterKind::sigmoid, m); }

void read_gpt_oss(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  read_window(config, 128, "LG", m);
  read_experts(config,
               {"num_local_experts", {"num_experts_per_tok", "experts_per_token"}, "intermediate_size"}, m);
  m.moe->normalise_top_k = m.moe->router_bias = true;
  bool attention = true;
  config.flag("attention_bias", attention);
  set_biases(m, {attention, attention, true});
  m.attention_sinks = true;
  published_quantised(config);
  settle_width(m);
}

void read_glm4_moe(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  bool attention = false, norms = false;
  config.flag("attention_bias", attention);
  set_biases(m, {attention, false, false});
  config.flag("use_qk_norm", norms);
  if (norms) m.qk_norm = QkNorm::per_head;
  ExpertKeys keys;
  keys.shared = "n_shared_experts";
  keys.first_dense = "first_k_dense_replace";
  read_experts(config, keys, m);
  m.moe->router = RouterKind::sigmoid;
  m.moe->router_bias = m.moe->normalise_top_k = true;
  config.flag("moe.normalise_top_k", "norm_topk_prob", m.moe->normalise_top_k);
  config.optional("moe.mtp_layers", "num_nextn_predict_layers", m.moe->mtp_layers);
  settle_width(m);
}

/// Layers without rotary positions meet all tokens, the others only those of their chunk, which is modelled as a
/// window.
void read_llama4(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  attention_bias(config, m);
  (void)config.given("use_qk_norm");  // these norms have no gains
  read_experts(config, {"num_local_experts", "num_experts_per_tok", "intermediate_size"}, m);
  MixtureOfExperts& moe = *m.moe;
  moe.router = RouterKind::sigmoid;
  moe.shared_experts = 1;
  moe.shared_ffn_hidden = moe.expert_ffn_hidden;
  config.optional("moe.every", "interleave_moe_layer_step", moe.every);
  (void)config.given("moe_layers");  // follows from the step above
  config.optional("ffn_hidden", "intermediate_size_mlp", m.ffn_hidden);
  std::int64_t chunk = 8192, interval = 4;
  config.optional("sliding_window", "attention_chunk_size", chunk);
  config.optional("", "no_rope_layer_interval", interval);
  (void)config.given("no_rope_layers");  // follows from the interval above
  if (interval < 1 || interval > 1000)
    return config.problem("no_rope_layer_interval", "must be from 1 to 1000");
  const std::string named = config.layer_pattern("layer_types", "chunked_attention", "full_attention");
  set_window(chunk, named.empty() ? std::string(static_cast<std::size_t>(interval - 1), 'L') + 'G' : named,
             m);
  if (moe.every >= 1) settle_width(m);
}

}  // namespace shardscape::yaml::huggingface
