// The table of families and their readers without experts: each reader names its family's keys and defaults; further
// down are the families that are known but refused.
#include "sweep/yaml/huggingface_families.h"

#include <algorithm>
#include <array>
#include <string>

#include "sweep/yaml/huggingface_experts.h"
#include "sweep/yaml/huggingface_parts.h"

namespace shardscape::yaml {

namespace {

using Config = HuggingFaceConfig;
using namespace huggingface;

/// The names of shapes in GPT-2's config.
const Shapes kGpt2Shapes = {{"n_layer", "num_hidden_layers"},
                            {"n_embd", "hidden_size"},
                            {"n_head", "num_attention_heads"},
                            "n_inner",
                            true};

void read_llama(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  bool attention = false, mlp = false;
  config.flag("attention_bias", attention);
  config.flag("mlp_bias", mlp);
  set_biases(m, {attention, attention, mlp});
  read_window(config, 0, "", m);
}

void read_mistral(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  read_window(config, 4096, "", m);
}

/// The window: where it is used, layers from max_window_layers on have it.
void read_qwen_window(Config& config, ModelSpec& m) {
  bool used = false;
  std::int64_t first = 28;
  config.flag("use_sliding_window", used);
  config.optional("", "max_window_layers", first);
  std::string pattern = "G";
  if (used && first < m.layers && m.layers <= 100'000) {
    pattern.assign(static_cast<std::size_t>(m.layers), 'L');
    std::fill_n(pattern.begin(), std::max<std::int64_t>(first, 0), 'G');
  }
  read_window(config, 4096, pattern, m);
}

void read_qwen2(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  set_biases(m, {true, false, false});
  read_qwen_window(config, m);
}

void read_qwen2_moe(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  bool qkv = true;
  config.flag("qkv_bias", qkv);
  set_biases(m, {qkv, false, false});
  read_qwen_window(config, m);
  read_qwen2_experts(config, m);
}

void read_qwen3(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  attention_bias(config, m);
  m.qk_norm = QkNorm::per_head;
  read_qwen_window(config, m);
}

void read_phi3(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  m.attention_dropout.reset();
  m.embedding_dropout.reset();
  read_dropouts(config, {"resid_pdrop", "attention_dropout", "embd_pdrop"}, m);
  read_window(config, 0, "", m);
}

void read_olmo2(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  attention_bias(config, m);
  m.norm_place = NormPlace::after;
  m.qk_norm = QkNorm::full_width;
}

void read_internlm2(Config& config, ModelSpec& m) {
  read_llama_block(config, m);
  bool bias = true;
  config.flag("bias", bias);
  set_biases(m, {bias, bias, false});
}

/// `hidden_activation` takes precedence over `hidden_act`, which older files have instead, with the same meaning.
void read_gemma_block(Config& config, ModelSpec& m) {
  read_shapes(config, {}, m);
  grouped_queries(config, m);
  m.head_dim = 256;
  config.optional("head_dim", "head_dim", m.head_dim);
  tied(config, true, m);
  gated(config, config.present("hidden_activation") ? "hidden_activation" : "hidden_act", MlpKind::gelu, m);
  (void)config.given("hidden_act");
  m.norm = NormKind::rmsnorm;
  rotary(config, "partial_rotary_factor", 1, m);
  read_dropouts(config, {nullptr, "attention_dropout", nullptr}, m);
  attention_bias(config, m);
}

void soft_caps(Config& config, double attention, double logits, ModelSpec& m) {
  const auto cap = [&](const char* key, double value) {
    if (config.given(key) && !config.present(key)) return false;
    config.number("", key, value);
    return value != 0;
  };
  m.attention_soft_cap = cap("attn_logit_softcapping", attention);
  m.logit_soft_cap = cap("final_logit_softcapping", logits);
}

void read_gemma2(Config& config, ModelSpec& m) {
  read_gemma_block(config, m);
  m.norm_place = NormPlace::both;
  soft_caps(config, 50, 30, m);
  read_window(config, 4096, "LG", m);
}

void read_gemma3(Config& config, ModelSpec& m) {
  read_gemma_block(config, m);
  m.norm_place = NormPlace::both;
  m.qk_norm = QkNorm::per_head;
  soft_caps(config, 0, 0, m);
  std::int64_t each = 6;
  config.optional("", {"sliding_window_pattern", "_sliding_window_pattern"}, each);
  if (each < 1 || each > 1000) return config.problem("sliding_window_pattern", "must be from 1 to 1000");
  read_window(config, 4096, std::string(static_cast<std::size_t>(each - 1), 'L') + 'G', m);
}

void read_nemotron(Config& config, ModelSpec& m) {
  read_shapes(config, {}, m);
  grouped_queries(config, m);
  config.optional("head_dim", "head_dim", m.head_dim);
  tied(config, false, m);
  m.mlp = MlpKind::squared_relu;
  config.activation("hidden_act", m.mlp);
  rotary(config, "rope_percent", 0.5, m);
  read_dropouts(config, {"hidden_dropout", "attention_dropout", nullptr}, m);
  bool attention = false, mlp = false;
  config.flag("attention_bias", attention);
  config.flag("mlp_bias", mlp);
  set_biases(m, {attention, attention, mlp});
}

void read_starcoder2(Config& config, ModelSpec& m) {
  read_shapes(config, {}, m);
  grouped_queries(config, m);
  config.optional("head_dim", "head_dim", m.head_dim);
  tied(config, true, m);
  config.activation("hidden_act", m.mlp);
  rotary(config, "partial_rotary_factor", 1, m);
  read_dropouts(config, {"residual_dropout", "attention_dropout", "embedding_dropout"}, m);
  read_bias(config, "use_bias", true, m);
  config.expect("norm_type", "layer_norm");
  config.expect("mlp_type", "default");
  read_window(config, 0, "", m);
}

void read_stablelm(Config& config, ModelSpec& m) {
  read_shapes(config, {}, m);
  grouped_queries(config, m);
  tied(config, false, m);
  gated(config, "hidden_act", MlpKind::silu, m);
  rotary(config, "partial_rotary_factor", 0.25, m);
  read_dropouts(config, {"hidden_dropout", "attention_dropout", nullptr}, m);
  bool qkv = false;
  config.flag("use_qkv_bias", qkv);
  set_biases(m, {qkv, false, false});
  config.flag("parallel_residual", "use_parallel_residual", m.parallel_residual);
  m.shared_norm = m.parallel_residual;
  require_whole_heads(config, "hidden_size", m);
}

void read_cohere(Config& config, ModelSpec& m) {
  read_shapes(config, {}, m);
  grouped_queries(config, m);
  tied(config, true, m);
  gated(config, "hidden_act", MlpKind::silu, m);
  m.norm_bias = false;
  rotary(config, "partial_rotary_factor", 1, m);
  read_dropouts(config, {nullptr, "attention_dropout", nullptr}, m);
  attention_bias(config, m);
  bool norms = false;  // norms of each head have gains of their own: as many as norms of the whole width
  config.flag("use_qk_norm", norms);
  if (norms) m.qk_norm = QkNorm::full_width;
  m.parallel_residual = m.shared_norm = true;
  require_whole_heads(config, "hidden_size", m);
}

void read_phi(Config& config, ModelSpec& m) {
  read_shapes(config, {}, m);
  grouped_queries(config, m);
  tied(config, false, m);
  config.activation("hidden_act", m.mlp);
  rotary(config, "partial_rotary_factor", 0.5, m);
  read_dropouts(config, {"resid_pdrop", "attention_dropout", "embd_pdrop"}, m);
  set_biases(m, {true, true, true});
  bool norms = false;
  config.flag("qk_layernorm", norms);
  if (norms) m.qk_norm = QkNorm::per_head;
  m.head_bias = !m.tied_embeddings;
  m.parallel_residual = m.shared_norm = true;
  require_whole_heads(config, "hidden_size", m);
}

/// Falcon has three kinds: 7B (one KV head, a shared norm), 40B and 180B (new_decoder_architecture: grouped queries,
/// two norms), RW (ALiBi, biases, sequential branches).
void read_falcon(Config& config, ModelSpec& m) {
  read_shapes(config,
              {{"num_hidden_layers", "n_layer"},
               "hidden_size",
               {"num_attention_heads", "n_head"},
               "ffn_hidden_size",
               true},
              m);
  bool grouped = false, one = true, alibi = false;
  config.flag("new_decoder_architecture", grouped);
  config.flag("multi_query", one);
  config.flag("alibi", alibi);
  std::int64_t kv_heads = m.heads, norms = 2;
  config.optional("kv_heads", {"num_kv_heads", "n_head_kv"}, kv_heads);
  m.kv_heads = grouped ? kv_heads : one ? 1 : m.heads;
  config.optional("", "num_ln_in_parallel_attn", norms);
  tied(config, true, m);
  config.activation("activation", m.mlp);
  m.parallel_residual = true;
  config.flag("parallel_residual", "parallel_attn", m.parallel_residual);
  m.parallel_residual = m.parallel_residual || grouped;
  m.shared_norm = m.parallel_residual && !(grouped && norms == 2);
  if (alibi) m.position = PositionKind::alibi;
  if (!alibi) rotary(config, "partial_rotary_factor", 1, m);
  read_dropouts(config, {"hidden_dropout", "attention_dropout", nullptr}, m);
  read_bias(config, "bias", false, m);
  require_whole_heads(config, "hidden_size", m);
}

void read_gptj(Config& config, ModelSpec& m) {
  read_shapes(config, kGpt2Shapes, m);
  tied(config, false, m);
  config.activation("activation_function", m.mlp);
  read_dropouts(config, {"resid_pdrop", "attn_pdrop", "embd_pdrop"}, m);
  set_biases(m, {false, false, true});
  m.head_bias = !m.tied_embeddings;
  m.parallel_residual = m.shared_norm = true;
  (void)config.given("n_positions");  // there is no table, as positions are rotary
  std::int64_t turned = 64;
  config.optional("rotary_fraction", "rotary_dim", turned);
  m.position = PositionKind::rotary;
  if (m.head_dim >= 1) m.rotary_fraction = static_cast<double>(turned) / static_cast<double>(m.head_dim);
  require_whole_heads(config, "n_head", m);
}

/// A block with LayerNorm, GELU, biases and a table of learned positions.
void read_gpt2(Config& config, ModelSpec& m) {
  read_shapes(config, kGpt2Shapes, m);
  config.required("max_positions", {"n_positions", "max_position_embeddings"}, m.max_positions);
  config.activation("activation_function", m.mlp);
  read_dropouts(config, {"resid_pdrop", "attn_pdrop", "embd_pdrop", 0.1, 0.1}, m);
  tied(config, true, m);
  m.linear_bias = true;
  require_whole_heads(config, "n_head", m);
}

void read_gpt_bigcode(Config& config, ModelSpec& m) {
  read_gpt2(config, m);
  bool one = true;
  config.flag("multi_query", one);
  if (one) m.kv_heads = 1;
}

/// Like gpt2, but Q, K and V have no biases, and some layers have a window: every second one unless the config says
/// otherwise.
void read_gpt_neo(Config& config, ModelSpec& m) {
  read_shapes(config, {"num_layers", "hidden_size", "num_heads", "intermediate_size", true}, m);
  config.required("max_positions", "max_position_embeddings", m.max_positions);
  config.activation("activation_function", m.mlp);
  read_dropouts(config, {"resid_dropout", "attention_dropout", "embed_dropout"}, m);
  tied(config, true, m);
  set_biases(m, {false, true, true});
  std::int64_t window = 256;
  config.optional("sliding_window", "window_size", window);
  const std::string types = config.layer_pattern("attention_types", "local", "global");
  const std::string layers = config.layer_pattern("attention_layers", "local", "global");
  const std::string& pattern = layers.empty() ? types : layers;
  set_window(window, pattern.empty() ? "GL" : pattern, m);
  require_whole_heads(config, "hidden_size", m);
}

void read_gpt_neox(Config& config, ModelSpec& m) {
  read_shapes(config, {}, m);
  config.activation("hidden_act", m.mlp);
  read_dropouts(config, {"hidden_dropout", "attention_dropout", "hidden_dropout"}, m);
  rotary(config, "rotary_pct", 0.25, m);
  bool attention = true;
  config.flag("attention_bias", attention);
  set_biases(m, {attention, attention, true});
  m.parallel_residual = true;
  config.flag("parallel_residual", "use_parallel_residual", m.parallel_residual);
  tied(config, false, m);
  require_whole_heads(config, "hidden_size", m);
}

/// OPT's table of positions has two more rows ahead of the first token's.
void read_opt(Config& config, ModelSpec& m) {
  read_shapes(config, {"num_hidden_layers", "hidden_size", "num_attention_heads", "ffn_dim", false}, m);
  std::int64_t positions = 2048;
  config.optional("max_positions", "max_position_embeddings", positions);
  m.max_positions = positions <= INT64_MAX - 2 ? positions + 2 : positions;
  m.mlp = MlpKind::relu;
  config.activation("activation_function", m.mlp);
  read_dropouts(config, {"dropout", "attention_dropout", nullptr, 0.1, 0}, m);
  tied(config, true, m);
  read_bias(config, "enable_bias", true, m);
  bool before = true, gains = true;
  config.flag("do_layer_norm_before", before);
  config.flag("layer_norm_elementwise_affine", gains);
  if (!before || !gains) {
    config.problem(before ? "layer_norm_elementwise_affine" : "do_layer_norm_before",
                   "norms after the residual, or without gains, are not modelled; it must be true");
  }
  std::int64_t width = m.hidden;
  config.optional("", "word_embed_proj_dim", width);
  if (width != m.hidden)
    config.problem("word_embed_proj_dim", "embeddings of another width than hidden_size are not modelled");
  require_whole_heads(config, "hidden_size", m);
}

void read_bloom(Config& config, ModelSpec& m) {
  read_shapes(config,
              {{"num_hidden_layers", "n_layer"},
               {"hidden_size", "n_embed"},
               {"num_attention_heads", "n_head"},
               nullptr,
               true},
              m);
  read_dropouts(config, {"hidden_dropout", "attention_dropout", nullptr}, m);
  tied(config, true, m);
  m.linear_bias = true;
  m.position = PositionKind::alibi;
  m.embedding_norm = true;
  require_whole_heads(config, "hidden_size", m);
}

/// MPT keeps attention in a map of its own, `attn_config`. There are no biases unless `no_bias` is false.
void read_mpt(Config& config, ModelSpec& m) {
  read_shapes(config, {"n_layers", "d_model", "n_heads", nullptr, true}, m);
  std::int64_t ratio = 4;
  config.optional("ffn_hidden", "expansion_ratio", ratio);
  m.ffn_hidden = ratio >= 1 && ratio <= 1000 && m.hidden <= INT64_MAX / 1000 ? ratio * m.hidden : 0;
  bool unbiased = true, alibi = true, norms = false, learned = true;
  config.flag("no_bias", unbiased);
  set_biases(m, {!unbiased, !unbiased, !unbiased});
  m.norm_bias = !unbiased;
  config.flag_inside("attn_config", "alibi", alibi);
  config.flag_inside("attn_config", "qk_ln", norms);
  if (norms) m.qk_norm = QkNorm::full_width;
  config.integer_inside("attn_config", "kv_n_heads", m.kv_heads);
  config.flag("learned_pos_emb", learned);
  if (alibi) {
    m.position = PositionKind::alibi;
    (void)config.given("max_seq_len");
  } else if (learned) {
    config.required("max_positions", "max_seq_len", m.max_positions);
  } else {
    config.problem("attn_config", "without ALiBi and learned positions the model knows no order");
  }
  config.expect("norm_type", "layernorm");
  double attention = 0;
  config.number_inside("attn_config", "attn_pdrop", attention);
  read_dropouts(config, {"resid_pdrop", nullptr, "emb_pdrop", 0, attention}, m);
  tied(config, true, m);
  require_whole_heads(config, "d_model", m);
}

constexpr std::array<HuggingFaceFamily, 35> kFamilies = {{{"llama", read_llama},
                                                          {"mistral", read_mistral},
                                                          {"qwen2", read_qwen2},
                                                          {"qwen3", read_qwen3},
                                                          {"gemma", read_gemma_block},
                                                          {"gemma2", read_gemma2},
                                                          {"gemma3_text", read_gemma3},
                                                          {"phi", read_phi},
                                                          {"phi3", read_phi3},
                                                          {"olmo2", read_olmo2},
                                                          {"internlm2", read_internlm2},
                                                          {"granite", read_llama},
                                                          {"cohere", read_cohere},
                                                          {"stablelm", read_stablelm},
                                                          {"nemotron", read_nemotron},
                                                          {"starcoder2", read_starcoder2},
                                                          {"falcon", read_falcon},
                                                          {"gpt2", read_gpt2},
                                                          {"gpt_bigcode", read_gpt_bigcode},
                                                          {"gpt_neo", read_gpt_neo},
                                                          {"gpt_neox", read_gpt_neox},
                                                          {"gptj", read_gptj},
                                                          {"opt", read_opt},
                                                          {"bloom", read_bloom},
                                                          {"mpt", read_mpt},
                                                          {"grok-1", read_grok},
                                                          {"mixtral", read_mixtral},
                                                          {"qwen3_moe", read_qwen3_moe},
                                                          {"qwen2_moe", read_qwen2_moe},
                                                          {"deepseek_v2", read_deepseek_v2},
                                                          {"deepseek_v3", read_deepseek_v3},
                                                          {"kimi_k2", read_deepseek_v3},
                                                          {"gpt_oss", read_gpt_oss},
                                                          {"glm4_moe", read_glm4_moe},
                                                          {"llama4_text", read_llama4}}};

constexpr std::string_view kExpertsOf = "has experts of a kind that is not modelled";
constexpr std::string_view kModelWithin =
    "is a model inside a model: give the config of the language model alone";
constexpr std::string_view kStates = "has states in place of attention, which are not modelled";

struct RefusedFamily {
  std::string_view name, reason;
};
constexpr RefusedFamily kRefusedFamilies[] = {
    {"dbrx", kExpertsOf},         {"olmoe", kExpertsOf},        {"phimoe", kExpertsOf},
    {"granitemoe", kExpertsOf},   {"jamba", kExpertsOf},        {"gemma3", kModelWithin},
    {"llama4", kModelWithin},     {"mllama", kModelWithin},     {"llava", kModelWithin},
    {"qwen2_vl", kModelWithin},   {"qwen2_5_vl", kModelWithin}, {"mistral3", kModelWithin},
    {"mamba", kStates},           {"mamba2", kStates},          {"rwkv", kStates},
    {"recurrent_gemma", kStates}, {"falcon_mamba", kStates}};

}  // namespace

std::span<const HuggingFaceFamily> huggingface_families() { return kFamilies; }

const HuggingFaceFamily* find_family(std::string_view name) {
  const auto at = std::ranges::find(kFamilies, name, &HuggingFaceFamily::name);
  return at == kFamilies.end() ? nullptr : &*at;
}

std::string_view refused_family(std::string_view name) {
  for (const RefusedFamily& family : kRefusedFamilies)
    if (family.name == name) return family.reason;
  return "";
}

}  // namespace shardscape::yaml
