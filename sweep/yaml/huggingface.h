// Reads the shapes of models from a Hugging Face config.json.
//
// The families that are read (the config's `model_type`) stand in one table, huggingface_families.json, of which a new
// one is a row. Every key shapes the computation, is known to be without effect on time and memory, or is a problem
// that names it (huggingface_config.h). Defaults are those of the Hugging Face transformers configuration classes.
#pragma once

#include <optional>
#include <string>

#include "engine/spec/model.h"
#include "engine/spec/precision_policy.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::yaml {

/// Reads a config. `name` becomes the model's name where the config does not name the model itself (`_name_or_path`);
/// `source` is the name of the file in messages.
std::optional<ModelSpec> read_huggingface(const std::string& text, const std::string& name,
                                          const std::string& source, Diagnostics& diagnostics);

/// The precision of the weights of a config's checkpoint, as its quantization_config says; nothing where it has none,
/// or one that is not modelled.
std::optional<PolicyName> checkpoint_precision(const std::string& text);

/// What most families call alike; 0: none, or not known. `ffn_hidden`: the width of the MLP, or of an expert.
struct HuggingFaceShape {
  double layers, hidden, experts, kv_heads, ffn_hidden, vocabulary;
};
/// Nothing where the text is no config or does not say it.
std::optional<HuggingFaceShape> huggingface_shape(const std::string& text);

}  // namespace shardscape::yaml
