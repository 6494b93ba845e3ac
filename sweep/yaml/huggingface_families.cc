// Reads huggingface_families.json, the table of families: a row starts from the one that it is like, and sets what
// differs. A key that no row has stops the program. Then reads a config by its family's row, part by part: shapes,
// heads, MLP, norms, positions, dropouts, biases, windows, experts, then what the row demands of further keys. A key
// that the row does not name leaves the default of the spec.
#include "sweep/yaml/huggingface_families.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/enum_names.h"
#include "engine/base/safe_text.h"
#include "sweep/yaml/huggingface_data.h"

namespace shardscape::yaml::huggingface {

namespace {

using Json = nlohmann::json;

/// The table's texts, which rows refer to.
const Json& table() {
  static const Json kTable = Json::parse(data::huggingface_families());
  return kTable;
}

const std::string& text_of(const Json& value) { return value.get_ref<const std::string&>(); }

void read(const Json& value, bool& out) { out = value.get<bool>(); }
void read(const Json& value, std::int64_t& out) { out = value.get<std::int64_t>(); }
void read(const Json& value, double& out) { out = value.get<double>(); }
void read(const Json& value, std::string_view& out) { out = text_of(value); }
void read(const Json& value, Names& out) {
  if (value.is_array())
    out = {text_of(value.at(0)).c_str(), text_of(value.at(1)).c_str()};
  else
    out = value.is_null() ? Names() : Names(text_of(value).c_str());
}
template <class E>
requires std::is_enum_v<E>
void read(const Json& value, E& out) { out = parse_enum<E>(text_of(value)).value(); }
/// Layers that may have biases.
void read(const Json& value, unsigned& bits) {
  constexpr std::string_view kLayers[] = {"qkv", "output", "mlp", "norms"};
  bits = 0;
  for (const Json& layer : value) {
    const auto* const at = std::ranges::find(kLayers, text_of(layer));
    SHARDSCAPE_CHECK(at != std::end(kLayers), text_of(layer));
    bits |= 1U << (at - kLayers);
  }
}

#define SHARDSCAPE_MEMBER(member) \
  if (const auto at = map.find(#member); at != map.end()) ++known, read(*at, row.member);
/// Reads the members that a map names; the others stay as they are.
#define SHARDSCAPE_ROW(Row, ...)                                              \
  void read(const Json& map, Row& row) {                                      \
    std::size_t known = map.count("comment") + map.count("like");             \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(SHARDSCAPE_MEMBER, __VA_ARGS__)) \
    SHARDSCAPE_CHECK(known == map.size(), json_text(map));                    \
  }
SHARDSCAPE_ROW(Flag, key, otherwise)
SHARDSCAPE_ROW(KvHeads, key, otherwise, grouped, one)
SHARDSCAPE_ROW(Bias, layers, key, otherwise, negated)
SHARDSCAPE_ROW(Dropouts, residual, attention, embedding, rate, attention_rate)
SHARDSCAPE_ROW(Positions, alibi, rows, rows_otherwise, further_rows, learned, turned, turned_otherwise,
               turned_dimensions)
SHARDSCAPE_ROW(Parallel, residual, shared_norm, norms)
SHARDSCAPE_ROW(SoftCap, key, otherwise, null_is_none)
SHARDSCAPE_ROW(Window, key, otherwise, null_is_none, pattern, period, period_otherwise, used, first, types,
               local, whole)
SHARDSCAPE_ROW(Experts, experts, top_k, width, dense_width, first_dense, every, shared, shared_otherwise,
               shared_gate, shared_width, shared_width_otherwise, normalise_top_k, router, router_bias,
               router_keys, mtp_layers, dense_layers)
SHARDSCAPE_ROW(Demand, key, must, text)

template <class Item, std::size_t kMost>
void read(const Json& list, std::array<Item, kMost>& out) {
  out = {};
  for (std::size_t i = 0; i < list.size(); ++i) read(list[i], out.at(i));
}

SHARDSCAPE_ROW(Family, name, layers, hidden, heads, heads_otherwise, vocabulary_otherwise, ffn_hidden,
               ffn_multiple, ffn_multiple_key, kv_heads, head_dim, head_dim_otherwise, heads_at, tied,
               activation, mlp, gated, norm, norm_place, qk_norm, qk_norm_used, embedding_norm, positions,
               dropouts, biases, head_bias, parallel, attention_cap, logit_cap, window, attention_sinks,
               latent, experts, demands, idle)
#undef SHARDSCAPE_ROW
#undef SHARDSCAPE_MEMBER

using Config = HuggingFaceConfig;

bool flag(Config& config, const Flag& choice, const char* field = "") {
  bool value = choice.otherwise;
  config.read(field, choice.key, value);
  return value;
}

void read_shapes(Config& config, const Family& family, ModelSpec& m) {
  config.required("layers", family.layers, m.layers);
  config.required("hidden", family.hidden, m.hidden);
  m.heads = family.heads_otherwise;
  config.required("heads", family.heads, m.heads);
  if (family.ffn_multiple == 0) {
    config.required("ffn_hidden", family.ffn_hidden, m.ffn_hidden);
  } else {
    std::int64_t multiple = family.ffn_multiple;
    config.read("ffn_hidden", family.ffn_multiple_key, multiple);
    const bool small = multiple >= 1 && multiple <= 1000 && m.hidden >= INT64_MIN / multiple &&
                       m.hidden <= INT64_MAX / multiple;
    m.ffn_hidden = small ? multiple * m.hidden : 0;
    config.read("ffn_hidden", family.ffn_hidden, m.ffn_hidden);
  }
  m.vocabulary = family.vocabulary_otherwise;
  config.required("vocabulary", "vocab_size", m.vocabulary);
}

/// Reads latent attention, in which the number of KV heads has no effect.
void read_latent(Config& config, ModelSpec& m) {
  LatentAttention& latent = m.latent.emplace();
  config.read("attention.q_rank", "q_lora_rank", latent.q_rank);
  config.required("attention.kv_rank", "kv_lora_rank", latent.kv_rank);
  config.required("attention.rope_dim", "qk_rope_head_dim", latent.rope_dim);
  config.required("attention.nope_dim", "qk_nope_head_dim", latent.nope_dim);
  config.required("attention.value_dim", "v_head_dim", latent.value_dim);
  m.kv_heads = m.heads;
  m.head_dim = latent.query_dim();
}

/// Whether queries are grouped.
bool read_heads(Config& config, const Family& family, ModelSpec& m) {
  const bool otherwise = family.kv_heads.otherwise > 0 && !config.present(family.heads);
  m.kv_heads = otherwise ? family.kv_heads.otherwise : m.heads;
  config.read(family.latent ? "" : "kv_heads", family.kv_heads.key, m.kv_heads);
  const bool grouped = flag(config, family.kv_heads.grouped), one = flag(config, family.kv_heads.one);
  if (!grouped) m.kv_heads = one ? 1 : m.heads;
  m.head_dim = m.heads >= 1 && m.hidden % m.heads == 0 ? m.hidden / m.heads : 0;
  if (family.head_dim_otherwise != 0) m.head_dim = family.head_dim_otherwise;
  config.read("head_dim", family.head_dim, m.head_dim);
  if (family.latent) read_latent(config, m);
  return grouped;
}

void read_mlp(Config& config, const Family& family, ModelSpec& m) {
  m.mlp = family.mlp;
  const char* const key = config.activation(family.activation, m.mlp);
  if (!family.gated) return;
  if (m.mlp == MlpKind::squared_relu)
    config.problem(key, "a gate of squared ReLU is not modelled; supported are gelu, relu and silu");
  const MlpKind plain = m.mlp;
  m.mlp = plain == MlpKind::gelu ? MlpKind::geglu : plain == MlpKind::relu ? MlpKind::reglu : MlpKind::swiglu;
}

void read_positions(Config& config, const Positions& positions, ModelSpec& m) {
  const bool alibi = flag(config, positions.alibi), learned = flag(config, positions.learned);
  if (alibi) {
    m.position = PositionKind::alibi;
    config.skip(positions.rows);
  } else if (positions.rows && !learned) {
    const std::string key = positions.alibi.key.first;
    config.problem(key.substr(0, key.find('/')),
                   "without ALiBi and learned positions the model knows no order");
  } else if (positions.rows) {
    m.max_positions = positions.rows_otherwise;
    if (m.max_positions == 0) config.required("max_positions", positions.rows, m.max_positions);
    if (positions.rows_otherwise != 0) config.read("max_positions", positions.rows, m.max_positions);
    if (m.max_positions <= INT64_MAX - positions.further_rows) m.max_positions += positions.further_rows;
  } else if (positions.turned_dimensions) {
    m.position = PositionKind::rotary;
    std::int64_t turned = 64;
    config.read("rotary_fraction", positions.turned_dimensions, turned);
    if (m.head_dim >= 1) m.rotary_fraction = static_cast<double>(turned) / static_cast<double>(m.head_dim);
  } else {
    m.position = PositionKind::rotary;
    m.rotary_fraction = positions.turned_otherwise;
    // The share has a key of its own, or is inside `rope_parameters` (transformers 5).
    for (const char* const key :
         {positions.turned.first, "partial_rotary_factor", "rope_parameters/partial_rotary_factor"})
      config.read("rotary_fraction", key, m.rotary_fraction);
  }
  if (m.position != PositionKind::rotary) return;
  config.read("context", "max_position_embeddings", m.context);
  double base = 0;
  for (const char* const key : {"rotary_emb_base", "rope_theta", "rope_parameters/rope_theta"})
    config.read("rotary_base", key, base);
  double low = 0;                                                      // of the kind "llama3" alone
  for (const std::string map : {"rope_scaling", "rope_parameters"}) {  // the latter in transformers 5
    config.read("", (map + "/low_freq_factor").c_str(), low);
    if (low > 0) config.read("rotary_scaling", (map + "/factor").c_str(), m.rotary_scaling);
    low = 0;
  }
  m.rotary_base = base >= 1 && base < 1e18 ? std::llround(base) : 0;
}

void read_dropouts(Config& config, const Dropouts& d, ModelSpec& m) {
  m.dropout = d.rate;
  config.read("dropout", d.residual, m.dropout);
  double attention = d.attention_rate, embedding = d.embedding ? d.rate : 0;
  config.read("attention_dropout", d.attention, attention);
  config.read("embedding_dropout", d.embedding, embedding);
  if (attention != m.dropout) m.attention_dropout = attention;
  if (embedding != m.dropout) m.embedding_dropout = embedding;
}

void read_biases(Config& config, const Family& family, ModelSpec& m) {
  unsigned biased = 0;
  for (const Bias& bias : family.biases) {
    const bool present = flag(config, {bias.key, bias.otherwise != bias.negated}) != bias.negated;
    if (present) biased |= bias.layers;
    if ((bias.layers & kNorms) != 0) m.norm_bias = present;
  }
  m.linear_bias = (biased & kLinear) == kLinear;
  m.qkv_bias = !m.linear_bias && (biased & kQkv) != 0;
  m.output_bias = !m.linear_bias && (biased & kOutput) != 0;
  m.mlp_bias = !m.linear_bias && (biased & kMlp) != 0;
  m.head_bias = family.head_bias && !m.tied_embeddings;
}

void read_parallel(Config& config, const Parallel& parallel, bool grouped, ModelSpec& m) {
  std::int64_t norms = 2;
  config.read("", parallel.norms, norms);
  const bool kind = grouped && parallel.norms;
  m.parallel_residual = flag(config, parallel.residual, "parallel_residual") || kind;
  m.shared_norm = m.parallel_residual && parallel.shared_norm && !(kind && norms == 2);
}

bool read_cap(Config& config, const SoftCap& cap) {
  double value = cap.null_is_none && config.given(cap.key) ? 0 : cap.otherwise;
  config.read("", cap.key, value);
  return value != 0;
}

/// The pattern of the layers with a window where `layer_types` does not say it.
std::string window_pattern(Config& config, const Window& window, bool used, const ModelSpec& m) {
  std::int64_t period = window.period_otherwise, first = 28;
  config.read("", window.period, period);
  config.read("", window.first, first);
  const bool periodic = period >= 1 && period <= 1000;
  if (window.period && periodic) return std::string(static_cast<std::size_t>(period - 1), 'L') + 'G';
  if (window.period) config.problem(window.period.first, "must be from 1 to 1000");
  if (!window.first) return std::string(window.pattern);
  if (!used || first >= m.layers || m.layers > 100'000) return "G";
  std::string pattern(static_cast<std::size_t>(m.layers), 'L');
  std::fill_n(pattern.begin(), std::max<std::int64_t>(first, 0), 'G');
  return pattern;
}

/// Sets the window of the layers in a pattern, which is stored in its shortest form.
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

void read_window(Config& config, const Window& window, ModelSpec& m) {
  if (!window.key) return;
  const bool used = flag(config, window.used);
  const std::string pattern = window_pattern(config, window, used, m);
  std::int64_t width = window.null_is_none && config.given(window.key) ? 0 : window.otherwise;
  config.read("sliding_window", window.key, width);
  if (!used && !window.first) width = 0;
  const std::string types = config.layer_pattern(window.types.first, window.local, window.whole, m.layers);
  const std::string others = config.layer_pattern(window.types.other, window.local, window.whole, m.layers);
  set_window(width, !types.empty() ? types : !others.empty() ? others : pattern, m);
}

/// Reads what the config says of the router, where its family lets it.
void read_router(Config& config, MixtureOfExperts& moe) {
  std::string scores = config.text("scoring_func");
  if (scores.empty()) scores = config.text("score_function");
  const std::string method = config.text("topk_method");
  if (scores == "sigmoid") moe.router = RouterKind::sigmoid;
  if (scores == "softmax") moe.router = RouterKind::softmax;
  if (!method.empty()) moe.router_bias = method == "noaux_tc";
  config.read("moe.expert_groups", "n_group", moe.expert_groups);
  config.read("moe.top_groups", "topk_group", moe.top_groups);
  config.read("moe.router_bias", "moe_router_enable_expert_bias", moe.router_bias);
}

void read_experts(Config& config, const Experts& keys, ModelSpec& m) {
  if (!keys.experts) return;
  MixtureOfExperts& moe = m.moe.emplace();
  config.required("moe.experts", keys.experts, moe.experts);
  config.required("moe.top_k", keys.top_k, moe.top_k);
  config.required("moe.expert_ffn_hidden", keys.width, moe.expert_ffn_hidden);
  moe.shared_experts = keys.shared_otherwise;
  config.read("moe.shared_experts", keys.shared, moe.shared_experts);
  const bool small =
      moe.shared_experts >= 0 && moe.shared_experts <= 1'000'000 && moe.expert_ffn_hidden <= 1'000'000'000;
  if (small) moe.shared_ffn_hidden = moe.shared_experts * moe.expert_ffn_hidden;
  if (keys.shared_width) moe.shared_ffn_hidden = keys.shared_width_otherwise;
  config.read("moe.shared_ffn_hidden", keys.shared_width, moe.shared_ffn_hidden);
  moe.shared_gate = keys.shared_gate;
  config.read("moe.first_dense_layers", keys.first_dense, moe.first_dense_layers);
  if (keys.dense_layers) config.first_layers(keys.dense_layers.first, moe.first_dense_layers);
  config.read("moe.every", keys.every, moe.every);
  config.read("ffn_hidden", keys.dense_width, m.ffn_hidden);
  moe.normalise_top_k = flag(config, keys.normalise_top_k, "moe.normalise_top_k");
  moe.router = keys.router;
  moe.router_bias = keys.router_bias;
  if (keys.router_keys) read_router(config, moe);
  config.read("moe.mtp_layers", keys.mtp_layers, moe.mtp_layers);
  // Where all layers have experts, the width of other layers means nothing and is set to the experts'.
  if (moe.everywhere()) m.ffn_hidden = moe.expert_ffn_hidden;
}

void check(Config& config, const Demand& demand, const ModelSpec& m) {
  if (!demand.key) return;
  if (demand.must == Must::contain) return config.expect(demand.key.first, demand.text);
  bool met = true;
  if (demand.must == Must::be_true) config.read("", demand.key, met);
  if (demand.must == Must::be_one || demand.must == Must::be_hidden_size) {
    const std::int64_t due = demand.must == Must::be_one ? 1 : m.hidden;
    std::int64_t value = due;
    config.read("", demand.key, value);
    met = value == due;
  }
  if (!met) config.problem(demand.key.first, std::string(demand.text));
}

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> kFamilies = [] {
    std::vector<Family> rows;
    for (const Json& written : table().at("families")) {
      const auto base = std::ranges::find(rows, written.value("like", ""), &Family::name);
      SHARDSCAPE_CHECK(base != rows.end() || !written.contains("like"), json_text(written));
      Family row = base == rows.end() ? Family() : *base;
      read(written, row);
      rows.push_back(row);
    }
    return rows;
  }();
  return kFamilies;
}

std::string_view family_of(std::string_view model_type, std::string_view architecture) {
  if (architecture == "MiniMaxM2ForCausalLM") return "minimax_m2";
  const Json& same_blocks = table().at("same_blocks");
  const auto family = same_blocks.find(model_type);
  return family == same_blocks.end() ? model_type : text_of(*family);
}

std::string_view refused_family(std::string_view name) {
  for (const auto& [reason, families] : table().at("refused").items())
    for (const Json& family : families)
      if (text_of(family) == name) return reason;
  return "";
}

void read_family(Config& config, const Family& family, ModelSpec& m) {
  read_shapes(config, family, m);
  const bool grouped = read_heads(config, family, m);
  m.tied_embeddings = flag(config, {"tie_word_embeddings", family.tied}, "tied_embeddings");
  read_mlp(config, family, m);
  m.norm = family.norm;
  for (const char* const key :
       {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon"})
    config.read("norm_epsilon", key, m.norm_epsilon);
  m.norm_place = family.norm_place;
  if (flag(config, family.qk_norm_used)) m.qk_norm = family.qk_norm;
  m.embedding_norm = family.embedding_norm;
  read_positions(config, family.positions, m);
  read_dropouts(config, family.dropouts, m);
  read_biases(config, family, m);
  read_parallel(config, family.parallel, grouped, m);
  m.attention_soft_cap = read_cap(config, family.attention_cap);
  m.logit_soft_cap = read_cap(config, family.logit_cap);
  read_window(config, family.window, m);
  m.attention_sinks = family.attention_sinks;
  read_experts(config, family.experts, m);
  for (const Demand& demand : family.demands) check(config, demand, m);
  for (const Names& key : family.idle) config.skip(key);
  config.skip_number_format("quantization_config");
  m.fp8_block_scales = config.has_block_scales("quantization_config");
  if (!family.head_dim && !family.latent && m.head_dim == 0 && m.heads >= 1 && !config.failed())
    config.problem(family.heads_at.first, "the hidden size must be a multiple of the heads");
}

}  // namespace shardscape::yaml::huggingface
