// Scans the text for nesting and keys given twice, finds the language model inside the config, and has the family
// that model_type names read it; unknown families and syntax errors are said with their places.
#include "sweep/yaml/huggingface.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/words.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/huggingface_config.h"
#include "sweep/yaml/huggingface_families.h"

namespace shardscape::yaml {

namespace {

using Json = nlohmann::json;

/// Checks the architectures: only models that predict tokens have the head that is counted.
void read_architectures(HuggingFaceConfig& config) {
  for (const std::string& name : config.texts("architectures")) {
    if (name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel")) continue;
    config.problem("architectures", "\"" + name +
                                        "\" has another head than a language model's, or none; supported "
                                        "are those in ...ForCausalLM and ...LMHeadModel");
  }
}

/// What is found in a text of JSON, valid or not, before it is parsed.
struct Scan {
  /// Lists and objects are nested deeper than any config's: copying and writing them recurses.
  bool too_deep = false;
  std::vector<std::pair<std::size_t, std::size_t>> repeated;  ///< places of keys that an object has twice
};
Scan scan(std::string_view text) {
  constexpr std::size_t kDeepest = 64;
  Scan found;
  std::vector<std::map<std::string_view, std::size_t>> open(1);  // keys of the objects around
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{' || text[at] == '[') open.emplace_back();
    if ((text[at] == '}' || text[at] == ']') && open.size() > 1) open.pop_back();
    if (open.size() > kDeepest + 1) return {true, {}};
    if (text[at] != '"') continue;
    const std::size_t begin = at++;
    for (; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + 1);
    if (next == std::string_view::npos || text[next] != ':') continue;
    const auto [first, fresh] = open.back().try_emplace(text.substr(begin, at + 1 - begin), begin);
    if (!fresh) found.repeated.emplace_back(first->second, begin);
  }
  return found;
}

/// The config of the language model where it stands inside that of a model which sees or hears as well, with what the
/// outer one says for both; else the config itself.
Json language_model(const Json& json) {
  const auto inner = json.find("text_config");
  if (inner == json.end() || !inner->is_object()) return json;
  Json config = *inner;
  for (const char* const key :
       {"model_type", "_name_or_path", "tie_word_embeddings", "vocab_size", "quantization_config"})
    if (!config.contains(key) && json.contains(key)) config[key] = json[key];
  config.erase("architectures");  // of the whole, if there are any
  return config;
}

/// The message about a family that is not read, with the families that are.
std::string family_problem(const std::string& name) {
  std::vector<std::string> known;
  for (const huggingface::Family& family : huggingface::families()) known.emplace_back(family.name);
  if (name.empty()) return "missing; one of " + join(known) + " is due";
  const std::string_view reason = huggingface::refused_family(name);
  if (!reason.empty())
    return fmt::format("family \"{}\" {}; supported families: {}", name, reason, join(known));
  return "unsupported family \"" + name + "\"; supported: " + join(known);
}

/// nlohmann's message without the exception's id and, for syntax errors, without the position.
std::string plain_message(const Json::exception& error, std::string_view until) {
  const std::string message = error.what();
  const std::size_t end = message.find(until);
  return "not valid JSON: " + (end == std::string::npos ? message : message.substr(end + until.size()));
}

Diagnostic syntax_error(const std::string& text, const std::string& source, const Json::parse_error& error) {
  const TextPlace place = place_of(text, error.byte > 0 ? error.byte - 1 : 0);
  return {{std::make_shared<const std::string>(source), place.line, place.column},
          "",
          plain_message(error, ": ")};
}

}  // namespace

std::optional<ModelSpec> read_huggingface(const std::string& text, const std::string& name,
                                          const std::string& source, Diagnostics& diagnostics) {
  Json json;
  const auto place = std::make_shared<const std::string>(source);
  const Scan found = scan(text);
  if (found.too_deep) {
    diagnostics.add({place, 1, 1}, "",
                    "must be a Hugging Face config: lists and objects are nested more than 64 deep");
    return std::nullopt;
  }
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    diagnostics.add(syntax_error(text, source, error));
    return std::nullopt;
  } catch (const Json::exception& error) {  // such as a number beyond the range of a double
    diagnostics.add({place, 1, 1}, "", plain_message(error, "] "));
    return std::nullopt;
  }
  if (!json.is_object()) {
    HuggingFaceConfig(json, text, source, diagnostics)
        .problem("", "must be a Hugging Face config: one JSON object");
    return std::nullopt;
  }
  for (const auto& [first, second] : found.repeated) {
    if (diagnostics.full()) break;
    const TextPlace here = place_of(text, second), before = place_of(text, first);
    diagnostics.add({place, here.line, here.column},
                    text.substr(second + 1, text.find('"', second + 1) - second - 1),
                    fmt::format("duplicate key; first given at {}:{}", before.line, before.column));
  }
  if (!found.repeated.empty()) return std::nullopt;
  json = language_model(json);
  HuggingFaceConfig config(json, text, source, diagnostics);
  const std::vector<std::string> architectures = config.texts("architectures");
  const std::string name_of_family(huggingface::family_of(
      config.text("model_type"), architectures.empty() ? "" : std::string_view(architectures.front())));
  const auto known = huggingface::families();
  const auto family = std::ranges::find(known, name_of_family, &huggingface::Family::name);
  if (family == known.end()) {
    config.problem("model_type", family_problem(name_of_family));
    return std::nullopt;
  }
  ModelSpec model;
  const std::string own_name = config.text("_name_or_path");
  model.name = own_name.empty() ? name : own_name;
  read_architectures(config);
  huggingface::read_family(config, *family, model);
  config.finish();
  if (!config.failed()) config.report(model.validate());
  if (config.failed()) return std::nullopt;
  return model;
}

std::optional<PolicyName> checkpoint_precision(const std::string& text) {
  if (scan(text).too_deep) return std::nullopt;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const Json config = language_model(json);
  const auto at = config.find("quantization_config");
  return at == config.end() ? std::nullopt : number_format(*at);
}

std::optional<HuggingFaceShape> huggingface_shape(const std::string& text) {
  if (scan(text).too_deep) return std::nullopt;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const Json config = language_model(json);
  const auto number = [&](std::initializer_list<const char*> keys) {
    for (const char* const key : keys)
      if (const auto at = config.find(key); at != config.end() && at->is_number()) return at->get<double>();
    return 0.0;
  };
  HuggingFaceShape shape{number({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}),
                         number({"hidden_size", "n_embd", "d_model"}),
                         number({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}),
                         number({"num_key_value_heads", "num_kv_heads"}),
                         number({"moe_intermediate_size", "intermediate_size", "n_inner", "ffn_dim"}),
                         number({"vocab_size"})};
  if (!(shape.layers >= 1) || !(shape.hidden >= 1)) return std::nullopt;
  return shape;
}

}  // namespace shardscape::yaml
