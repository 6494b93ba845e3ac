#include "sweep/yaml/huggingface_parts.h"

#include <algorithm>

namespace shardscape::yaml::huggingface {

void set_biases(ModelSpec& m, const Biases& b) {
  m.linear_bias = b.qkv && b.output && b.mlp;
  m.qkv_bias = b.qkv && !m.linear_bias;
  m.output_bias = b.output && !m.linear_bias;
  m.mlp_bias = b.mlp && !m.linear_bias;
}

void read_bias(HuggingFaceConfig& config, const char* key, bool biased, ModelSpec& m) {
  config.flag(key, biased);
  set_biases(m, {biased, biased, biased});
}

void read_dropouts(HuggingFaceConfig& config, const Dropouts& d, ModelSpec& m) {
  m.dropout = d.rate;
  if (d.residual != nullptr) config.number("dropout", d.residual, m.dropout);
  double attention = d.attention_rate;
  if (d.attention != nullptr) config.number("attention_dropout", d.attention, attention);
  double embedding = d.embedding != nullptr ? d.rate : 0;
  if (d.embedding != nullptr) config.number("embedding_dropout", d.embedding, embedding);
  if (attention != m.dropout) m.attention_dropout = attention;
  if (embedding != m.dropout) m.embedding_dropout = embedding;
}

void read_shapes(HuggingFaceConfig& config, const Shapes& keys, ModelSpec& m) {
  config.required("layers", keys.layers, m.layers);
  config.required("hidden", keys.hidden, m.hidden);
  config.required("heads", keys.heads, m.heads);
  m.kv_heads = m.heads;
  m.head_dim = m.heads >= 1 && m.hidden % m.heads == 0 ? m.hidden / m.heads : 0;
  if (keys.four_times) {
    m.ffn_hidden = m.hidden <= INT64_MAX / 4 ? 4 * m.hidden : 0;
    if (keys.ffn_hidden != nullptr) config.optional("ffn_hidden", keys.ffn_hidden, m.ffn_hidden);
  } else {
    config.required("ffn_hidden", keys.ffn_hidden, m.ffn_hidden);
  }
  config.required("vocabulary", "vocab_size", m.vocabulary);
}

void tied(HuggingFaceConfig& config, bool otherwise, ModelSpec& m) {
  m.tied_embeddings = otherwise;
  config.flag("tied_embeddings", "tie_word_embeddings", m.tied_embeddings);
}

void require_whole_heads(HuggingFaceConfig& config, const char* key, const ModelSpec& m) {
  if (m.head_dim == 0 && m.heads >= 1 && !config.failed())
    config.problem(key, "the hidden size must be a multiple of the heads");
}

void grouped_queries(HuggingFaceConfig& config, ModelSpec& m) {
  config.optional("kv_heads", "num_key_value_heads", m.kv_heads);
}

void rotary(HuggingFaceConfig& config, const char* key, double fraction, ModelSpec& m) {
  m.position = PositionKind::rotary;
  m.rotary_fraction = fraction;
  config.number("rotary_fraction", key, m.rotary_fraction);
  config.number("rotary_fraction", "partial_rotary_factor", m.rotary_fraction);
  config.number_inside("rope_parameters", "partial_rotary_factor", m.rotary_fraction);
}

namespace {

MlpKind gated_kind(MlpKind plain) {
  if (plain == MlpKind::gelu) return MlpKind::geglu;
  return plain == MlpKind::relu ? MlpKind::reglu : MlpKind::swiglu;
}

}  // namespace

void gated(HuggingFaceConfig& config, const char* key, MlpKind otherwise, ModelSpec& m) {
  MlpKind plain = otherwise;
  config.activation(key, plain);
  if (plain == MlpKind::squared_relu)
    config.problem(key, "a gate of squared ReLU is not modelled; supported are gelu, relu and silu");
  m.mlp = gated_kind(plain);
}

void set_window(std::int64_t window, std::string pattern, ModelSpec& m) {
  if (m.layers >= 1 && pattern.size() > static_cast<std::size_t>(m.layers))
    pattern.resize(static_cast<std::size_t>(m.layers));
  if (window == 0 || (!pattern.empty() && pattern.find('L') == std::string::npos)) return;
  m.sliding_window = window;
  std::size_t period = 1;
  const auto repeats = [&] {
    for (std::size_t i = period; i < pattern.size(); ++i)
      if (pattern[i] != pattern[i - period]) return false;
    return true;
  };
  while (period < pattern.size() && !repeats()) ++period;
  pattern.resize(std::min(period, pattern.size()));
  if (pattern != "L") m.window_pattern = pattern;
}

void read_window(HuggingFaceConfig& config, std::int64_t otherwise, const std::string& pattern,
                 ModelSpec& m) {
  std::int64_t window = config.given("sliding_window") ? 0 : otherwise;
  config.optional("sliding_window", "sliding_window", window);
  const std::string named = config.layer_pattern("layer_types", "sliding_attention", "full_attention");
  set_window(window, named.empty() ? pattern : named, m);
}

void read_llama_block(HuggingFaceConfig& config, ModelSpec& m) {
  read_shapes(config, {}, m);
  grouped_queries(config, m);
  config.optional("head_dim", "head_dim", m.head_dim);
  tied(config, false, m);
  gated(config, "hidden_act", MlpKind::silu, m);
  m.norm = NormKind::rmsnorm;
  rotary(config, "partial_rotary_factor", 1, m);
  read_dropouts(config, {nullptr, "attention_dropout", nullptr}, m);
}

void attention_bias(HuggingFaceConfig& config, ModelSpec& m) {
  bool attention = false;
  config.flag("attention_bias", attention);
  set_biases(m, {attention, attention, false});
}

}  // namespace shardscape::yaml::huggingface
