#include "sweep/yaml/huggingface.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/words.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/huggingface_config.h"
#include "sweep/yaml/huggingface_reader.h"

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
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    diagnostics.add(syntax_error(text, source, error));
    return std::nullopt;
  } catch (const Json::exception& error) {  // such as a number beyond the range of a double
    diagnostics.add({std::make_shared<const std::string>(source), 1, 1}, "", plain_message(error, "] "));
    return std::nullopt;
  }
  HuggingFaceConfig config(json, text, source, diagnostics);
  if (!json.is_object()) {
    config.problem("", "must be a Hugging Face config: one JSON object");
    return std::nullopt;
  }
  const std::string name_of_family = config.text("model_type");
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

}  // namespace shardscape::yaml
