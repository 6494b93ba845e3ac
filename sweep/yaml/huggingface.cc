#include "sweep/yaml/huggingface.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/safe_text.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/huggingface_keys.h"

namespace shardscape::yaml {

namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 6> kFamilies = {"llama", "mistral", "qwen2",
                                                       "gpt2",  "gpt_neo", "gpt_neox"};

/// The functions that transformers knows by these names and that are modelled, by their kind (one projection
/// in). Those of one kind differ in vector instructions alone.
struct Activation {
  std::string_view name;
  MlpKind kind;
};
constexpr std::array<Activation, 11> kActivations = {{{"gelu", MlpKind::gelu},
                                                      {"gelu_10", MlpKind::gelu},
                                                      {"gelu_accurate", MlpKind::gelu},
                                                      {"gelu_fast", MlpKind::gelu},
                                                      {"gelu_new", MlpKind::gelu},
                                                      {"gelu_python", MlpKind::gelu},
                                                      {"gelu_pytorch_tanh", MlpKind::gelu},
                                                      {"quick_gelu", MlpKind::gelu},
                                                      {"relu", MlpKind::relu},
                                                      {"silu", MlpKind::silu},
                                                      {"swish", MlpKind::silu}}};

MlpKind gated_kind(MlpKind plain) {
  if (plain == MlpKind::gelu) return MlpKind::geglu;
  return plain == MlpKind::relu ? MlpKind::reglu : MlpKind::swiglu;
}

/// Null, false, 0 or empty: what the key would add is not there.
bool switched_off(const Json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_number() && value.get<double>() == 0) || (!value.is_number() && value.empty()) ||
         (value.is_string() && value.get<std::string>().empty());
}

/// Reads typed keys of a config and remembers which of them each field of the spec came from.
class Config {
 public:
  Config(const Json& json, const std::string& text, std::string source, Diagnostics& diagnostics)
      : json_(json),
        text_(text),
        source_(std::make_shared<const std::string>(std::move(source))),
        diagnostics_(diagnostics) {}

  void problem(const std::string& key, const std::string& message) {
    failed_ = true;
    diagnostics_.add(locate(key), key, message);
  }

  void required(const char* field, const char* key, std::int64_t& value) {
    if (present(key)) {
      optional(field, key, value);
    } else {
      problem(key, "missing; this key is required");
    }
  }

  void optional(const char* field, const char* key, std::int64_t& value) {
    keys_.emplace_back(field, key);
    if (!present(key)) return;
    const Json& entry = json_.at(key);
    const bool fits =
        entry.is_number_integer() &&
        !(entry.is_number_unsigned() && entry.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX));
    if (fits) {
      value = entry.get<std::int64_t>();
    } else {
      problem(key, "must be an integer, not " + json_text(entry));
    }
  }

  /// A key that no field of the spec has for itself.
  void flag(const char* key, bool& value) { flag("", key, value); }

  void flag(const char* field, const char* key, bool& value) {
    keys_.emplace_back(field, key);
    if (!present(key)) return;
    const Json& entry = json_.at(key);
    if (entry.is_boolean()) {
      value = entry.get<bool>();
    } else {
      problem(key, "must be true or false, not " + json_text(entry));
    }
  }

  void number(const char* field, const char* key, double& value) {
    keys_.emplace_back(field, key);
    if (!present(key)) return;
    const Json& entry = json_.at(key);
    if (entry.is_number()) {
      value = entry.get<double>();
    } else {
      problem(key, "must be a number, not " + json_text(entry));
    }
  }

  std::string text(const char* key) {
    return present(key) && json_.at(key).is_string() ? json_.at(key).get<std::string>() : std::string();
  }

  /// A number of a key inside a map; whatever else the map says stays unread.
  void number_inside(const char* key, const char* inner, double& value) {
    if (!present(key) || !json_.at(key).is_object()) return;
    const Json& map = json_.at(key);
    if (!map.contains(inner) || map.at(inner).is_null()) return;
    if (map.at(inner).is_number()) {
      value = map.at(inner).get<double>();
    } else {
      problem(key, std::string(inner) + " must be a number, not " + json_text(map.at(inner)));
    }
  }

  /// A list of texts; others are problems.
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> result;
    if (!present(key)) return result;
    const Json& list = json_.at(key);
    const bool good =
        list.is_array() && std::ranges::all_of(list, [](const Json& v) { return v.is_string(); });
    if (good) return list.get<std::vector<std::string>>();
    problem(key, "must be a list of texts, not " + json_text(list));
    return result;
  }

  /// The kind of the MLP's activation; `kind` stays where the key is absent.
  void activation(const char* key, MlpKind& kind) {
    if (!present(key)) return;
    const std::string name = text(key);
    const auto at = std::ranges::find(kActivations, name, &Activation::name);
    if (at != kActivations.end()) {
      kind = at->kind;
      return;
    }
    std::vector<std::string> known;
    for (const Activation& activation : kActivations) known.emplace_back(activation.name);
    problem(key, "unsupported activation " + json_text(json_.at(key)) + "; supported: " + join(known));
  }

  /// The kinds of attention of the layers: true where some of them are `local`. Others than local ones and
  /// `whole` are problems. The value is a list of names, or of pairs of names and how often they repeat.
  bool has_local_layers(const char* key, std::string_view local, std::string_view whole) {
    if (!present(key)) return false;
    bool found = false;
    const auto visit = [&](const auto& self, const Json& value) -> void {
      if (value.is_array()) {
        for (const Json& item : value) self(self, item);
      } else if (value.is_string() && value.get<std::string>() == local) {
        found = true;
      } else if (!value.is_number_integer() && !(value.is_string() && value.get<std::string>() == whole)) {
        problem(key, "unsupported kind of attention " + json_text(value) +
                         "; supported: " + std::string(whole) + ", " + std::string(local));
      }
    };
    visit(visit, json_.at(key));
    return found;
  }

  /// Absent and null both mean "the default".
  [[nodiscard]] bool present(const char* key) { return given(key) && !json_.at(key).is_null(); }
  /// The key is there, be it null.
  [[nodiscard]] bool given(const char* key) {
    read_.insert(key);
    return json_.contains(key);
  }

  /// Every key that was not read is known to be without effect, or is a problem.
  void finish() {
    for (const auto& [key, value] : json_.items()) {
      if (value.is_null() || read_.contains(key) || is_idle_key(key)) continue;
      const std::string_view refusal = refusal_of(key);
      if (refusal.empty()) {
        problem(key, "unknown key" + meant(key) +
                         "; whether it changes time or memory is not known: take it out where it doesn't");
      } else if (!switched_off(value)) {
        problem(key, std::string(refusal));
      }
    }
  }

  /// Rules of the spec, reported against the config's own keys.
  void report(const Problems& problems) {
    for (const Problem& found : problems.list()) {
      const auto it = std::ranges::find(keys_, found.field, &std::pair<std::string, std::string>::first);
      problem(it == keys_.end() ? found.field : it->second, found.message);
    }
  }

  [[nodiscard]] bool failed() const { return failed_; }

 private:
  /// What a misspelt key may be.
  [[nodiscard]] std::string meant(const std::string& key) const {
    std::vector<std::string> known(read_.begin(), read_.end());
    for (const IdleKeys& group : idle_keys()) known.insert(known.end(), group.keys.begin(), group.keys.end());
    const std::vector<std::string> near = closest(key, known);
    return near.empty() ? std::string() : "; did you mean \"" + near.front() + "\"?";
  }

  /// The line and column of a key's first appearance; the start of the file where it is absent.
  [[nodiscard]] Location locate(const std::string& key) const {
    const std::size_t offset = text_.find('"' + key + '"');
    if (key.empty() || offset == std::string::npos) return {source_, 1, 1};
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(offset);
    const auto lines = std::count(text_.begin(), end, '\n');
    const std::size_t line_start = offset == 0 ? std::string::npos : text_.rfind('\n', offset - 1);
    const std::size_t column = line_start == std::string::npos ? offset + 1 : offset - line_start;
    return {source_, static_cast<int>(lines) + 1, static_cast<int>(column)};
  }

  const Json& json_;
  const std::string& text_;
  std::shared_ptr<const std::string> source_;
  Diagnostics& diagnostics_;
  std::vector<std::pair<std::string, std::string>> keys_;  ///< field of the spec, key of the config
  std::set<std::string, std::less<>> read_;                ///< keys that were asked for
  bool failed_ = false;
};

std::int64_t head_dim(const ModelSpec& m) {
  return m.heads >= 1 && m.hidden % m.heads == 0 ? m.hidden / m.heads : 0;
}

void set_biases(ModelSpec& m, bool qkv, bool output, bool mlp) {
  m.linear_bias = qkv && output && mlp;
  m.qkv_bias = qkv && !m.linear_bias;
  m.output_bias = output && !m.linear_bias;
  m.mlp_bias = mlp && !m.linear_bias;
}

/// The two rates that may differ from that of the residual stream.
void set_dropouts(ModelSpec& m, double attention, double embedding) {
  if (attention != m.dropout) m.attention_dropout = attention;
  if (embedding != m.dropout) m.embedding_dropout = embedding;
}

/// The share of rotary dimensions: a key of its own, or one inside `rope_parameters` (transformers 5).
void read_rotary_fraction(Config& config, const char* key, ModelSpec& m) {
  config.number("rotary_fraction", key, m.rotary_fraction);
  config.number("rotary_fraction", "partial_rotary_factor", m.rotary_fraction);
  config.number_inside("rope_parameters", "partial_rotary_factor", m.rotary_fraction);
}

/// Which layers have the window, where the config says it layer by layer, goes before what the family does.
void read_window(Config& config, std::string_view family, ModelSpec& m) {
  std::int64_t window = family == "llama" || config.given("sliding_window") ? 0 : 4096;
  config.optional("sliding_window", "sliding_window", window);
  bool used = true;
  if (family == "qwen2") {  // the layers from max_window_layers on have it
    used = false;
    std::int64_t first = 28;
    config.flag("use_sliding_window", used);
    config.optional("", "max_window_layers", first);
    used = used && first < m.layers;
  }
  if (config.present("layer_types"))
    used = config.has_local_layers("layer_types", "sliding_attention", "full_attention");
  if (used) m.sliding_window = window;
}

/// llama, mistral and qwen2: rotary positions, RMSNorm, gated MLP, grouped-query attention.
void read_llama(Config& config, std::string_view family, ModelSpec& m) {
  config.required("layers", "num_hidden_layers", m.layers);
  config.required("hidden", "hidden_size", m.hidden);
  config.required("heads", "num_attention_heads", m.heads);
  m.kv_heads = m.heads;
  config.optional("kv_heads", "num_key_value_heads", m.kv_heads);
  m.head_dim = head_dim(m);
  config.optional("head_dim", "head_dim", m.head_dim);
  config.required("ffn_hidden", "intermediate_size", m.ffn_hidden);
  config.required("vocabulary", "vocab_size", m.vocabulary);
  config.flag("tied_embeddings", "tie_word_embeddings", m.tied_embeddings);
  MlpKind activation = MlpKind::silu;
  config.activation("hidden_act", activation);
  m.mlp = gated_kind(activation);
  m.norm = NormKind::rmsnorm;
  m.position = PositionKind::rotary;
  read_rotary_fraction(config, "partial_rotary_factor", m);
  bool attention = false, mlp = false;
  if (family == "llama") {
    config.flag("attention_bias", attention);
    config.flag("mlp_bias", mlp);
  }
  set_biases(m, attention || family == "qwen2", attention, mlp);
  double attention_dropout = 0;
  config.number("attention_dropout", "attention_dropout", attention_dropout);
  set_dropouts(m, attention_dropout, 0);
  read_window(config, family, m);
}

/// gpt2 has names of its own; LayerNorm, GELU, biases and learned positions.
void read_gpt2(Config& config, ModelSpec& m) {
  config.required("layers", "n_layer", m.layers);
  config.required("hidden", "n_embd", m.hidden);
  config.required("heads", "n_head", m.heads);
  m.ffn_hidden = m.hidden <= INT64_MAX / 4 ? 4 * m.hidden : 0;
  config.optional("ffn_hidden", "n_inner", m.ffn_hidden);
  config.required("vocabulary", "vocab_size", m.vocabulary);
  config.required("max_positions", "n_positions", m.max_positions);
  config.activation("activation_function", m.mlp);
  m.dropout = 0.1;
  double attention = 0.1, embedding = 0.1;
  config.number("dropout", "resid_pdrop", m.dropout);
  config.number("attention_dropout", "attn_pdrop", attention);
  config.number("embedding_dropout", "embd_pdrop", embedding);
  set_dropouts(m, attention, embedding);
  m.tied_embeddings = true;
  m.linear_bias = true;
}

/// As gpt2, but Q, K and V have no biases, and layers may look back on a window only: every other one where
/// the config doesn't say.
void read_gpt_neo(Config& config, ModelSpec& m) {
  config.required("layers", "num_layers", m.layers);
  config.required("hidden", "hidden_size", m.hidden);
  config.required("heads", "num_heads", m.heads);
  m.ffn_hidden = m.hidden <= INT64_MAX / 4 ? 4 * m.hidden : 0;
  config.optional("ffn_hidden", "intermediate_size", m.ffn_hidden);
  config.required("vocabulary", "vocab_size", m.vocabulary);
  config.required("max_positions", "max_position_embeddings", m.max_positions);
  config.activation("activation_function", m.mlp);
  double attention = 0, embedding = 0;
  config.number("dropout", "resid_dropout", m.dropout);
  config.number("attention_dropout", "attention_dropout", attention);
  config.number("embedding_dropout", "embed_dropout", embedding);
  set_dropouts(m, attention, embedding);
  m.tied_embeddings = true;
  set_biases(m, false, true, true);
  std::int64_t window = 256;
  config.optional("sliding_window", "window_size", window);
  bool local = config.has_local_layers("attention_types", "local", "global");
  if (config.present("attention_layers")) {
    local = config.has_local_layers("attention_layers", "local", "global");
  } else if (!config.present("attention_types")) {
    local = true;
  }
  if (local) m.sliding_window = window;
}

void read_gpt_neox(Config& config, ModelSpec& m) {
  config.required("layers", "num_hidden_layers", m.layers);
  config.required("hidden", "hidden_size", m.hidden);
  config.required("heads", "num_attention_heads", m.heads);
  config.required("ffn_hidden", "intermediate_size", m.ffn_hidden);
  config.required("vocabulary", "vocab_size", m.vocabulary);
  config.activation("hidden_act", m.mlp);
  double attention = 0;
  config.number("dropout", "hidden_dropout", m.dropout);
  config.number("attention_dropout", "attention_dropout", attention);
  set_dropouts(m, attention, m.dropout);
  m.position = PositionKind::rotary;
  m.rotary_fraction = 0.25;
  read_rotary_fraction(config, "rotary_pct", m);
  bool attention_bias = true;
  config.flag("attention_bias", attention_bias);
  set_biases(m, attention_bias, attention_bias, true);
  m.parallel_residual = true;
  config.flag("parallel_residual", "use_parallel_residual", m.parallel_residual);
}

/// Only models that predict tokens have the head that is counted.
void read_architectures(Config& config) {
  for (const std::string& name : config.texts("architectures")) {
    if (name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel")) continue;
    config.problem("architectures", "\"" + name +
                                        "\" has another head than a language model's, or none; supported "
                                        "are those in ...ForCausalLM and ...LMHeadModel");
  }
}

void read_family(Config& config, std::string_view family, ModelSpec& m) {
  read_architectures(config);
  if (family == "gpt2") {
    read_gpt2(config, m);
  } else if (family == "gpt_neo") {
    read_gpt_neo(config, m);
  } else if (family == "gpt_neox") {
    read_gpt_neox(config, m);
  } else {
    return read_llama(config, family, m);
  }
  config.flag("tied_embeddings", "tie_word_embeddings", m.tied_embeddings);
  m.kv_heads = m.heads;
  m.head_dim = head_dim(m);
  if (m.head_dim == 0 && m.heads >= 1 && !config.failed()) {
    config.problem(family == "gpt2" ? "n_head" : "hidden_size",
                   "the hidden size must be a multiple of the heads");
  }
}

/// What nlohmann says after the exception's id and, for syntax errors, after the position.
std::string plain_message(const Json::exception& error, std::string_view until) {
  const std::string message = error.what();
  const std::size_t end = message.find(until);
  return "not valid JSON: " + (end == std::string::npos ? message : message.substr(end + until.size()));
}

Diagnostic syntax_error(const std::string& text, const std::string& source, const Json::parse_error& error) {
  const std::size_t end = std::min(text.size(), error.byte > 0 ? error.byte - 1 : 0);
  const auto stop = text.begin() + static_cast<std::ptrdiff_t>(end);
  const auto lines = std::count(text.begin(), stop, '\n');
  const auto column = end - (end == 0 ? 0 : text.rfind('\n', end - 1) + 1) + 1;
  return {
      {std::make_shared<const std::string>(source), static_cast<int>(lines) + 1, static_cast<int>(column)},
      "",
      plain_message(error, ": ")};
}

}  // namespace

std::optional<ModelSpec> read_huggingface(const std::string& text, const std::string& name,
                                          const std::string& source, Diagnostics& diagnostics) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    diagnostics.add(syntax_error(text, source, error));
    return std::nullopt;
  } catch (const Json::exception& error) {  // a number beyond the range of a double
    diagnostics.add({std::make_shared<const std::string>(source), 1, 1}, "", plain_message(error, "] "));
    return std::nullopt;
  }
  Config config(json, text, source, diagnostics);
  if (!json.is_object()) {
    config.problem("", "must be a Hugging Face config: one JSON object");
    return std::nullopt;
  }
  const std::string family = config.text("model_type");
  if (std::ranges::find(kFamilies, family) == kFamilies.end()) {
    const std::vector<std::string> known(kFamilies.begin(), kFamilies.end());
    config.problem("model_type", family.empty()
                                     ? "missing; one of " + join(known) + " is due"
                                     : "unsupported family \"" + family + "\"; supported: " + join(known));
    return std::nullopt;
  }
  ModelSpec model;
  const std::string own_name = config.text("_name_or_path");
  model.name = own_name.empty() ? name : own_name;
  read_family(config, family, model);
  config.finish();
  if (!config.failed()) config.report(model.validate());
  if (config.failed()) return std::nullopt;
  return model;
}

}  // namespace shardscape::yaml
