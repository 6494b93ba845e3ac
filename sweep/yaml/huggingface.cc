#include "sweep/yaml/huggingface.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/safe_text.h"
#include "sweep/yaml/suggest.h"

namespace shardscape::yaml {

namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 6> kFamilies = {"llama", "mistral", "qwen2",
                                                       "gpt2",  "gpt_neo", "gpt_neox"};

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

  void probability(const char* field, const char* key, double& value) {
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

  /// Absent and null both mean "the default".
  [[nodiscard]] bool present(const char* key) const {
    return json_.contains(key) && !json_.at(key).is_null();
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
  bool failed_ = false;
};

std::int64_t head_dim(const ModelSpec& m) {
  return m.heads >= 1 && m.hidden % m.heads == 0 ? m.hidden / m.heads : 0;
}

/// llama, mistral and qwen2: rotary positions, RMSNorm, SwiGLU, grouped-query attention.
void read_llama(Config& config, bool qwen, ModelSpec& m) {
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
  m.mlp = MlpKind::swiglu;
  m.norm = NormKind::rmsnorm;
  m.position = PositionKind::rotary;
  m.qkv_bias = qwen;
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
  config.probability("dropout", "resid_pdrop", m.dropout);
  m.tied_embeddings = true;
  m.linear_bias = true;
}

void read_gpt_neo(Config& config, ModelSpec& m) {
  config.required("layers", "num_layers", m.layers);
  config.required("hidden", "hidden_size", m.hidden);
  config.required("heads", "num_heads", m.heads);
  m.ffn_hidden = m.hidden <= INT64_MAX / 4 ? 4 * m.hidden : 0;
  config.optional("ffn_hidden", "intermediate_size", m.ffn_hidden);
  config.required("vocabulary", "vocab_size", m.vocabulary);
  config.required("max_positions", "max_position_embeddings", m.max_positions);
  config.probability("dropout", "resid_dropout", m.dropout);
  m.tied_embeddings = true;
  m.linear_bias = true;
}

void read_gpt_neox(Config& config, ModelSpec& m) {
  config.required("layers", "num_hidden_layers", m.layers);
  config.required("hidden", "hidden_size", m.hidden);
  config.required("heads", "num_attention_heads", m.heads);
  config.required("ffn_hidden", "intermediate_size", m.ffn_hidden);
  config.required("vocabulary", "vocab_size", m.vocabulary);
  config.probability("dropout", "hidden_dropout", m.dropout);
  m.position = PositionKind::rotary;
  m.linear_bias = true;
}

void read_family(Config& config, std::string_view family, ModelSpec& m) {
  if (family == "gpt2") {
    read_gpt2(config, m);
  } else if (family == "gpt_neo") {
    read_gpt_neo(config, m);
  } else if (family == "gpt_neox") {
    read_gpt_neox(config, m);
  } else {
    return read_llama(config, family == "qwen2", m);
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
  if (!config.failed()) config.report(model.validate());
  if (config.failed()) return std::nullopt;
  return model;
}

}  // namespace shardscape::yaml
