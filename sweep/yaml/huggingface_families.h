// The families of models whose Hugging Face configs are read, in one table.
#pragma once

#include <span>
#include <string_view>

#include "sweep/yaml/huggingface_config.h"

namespace shardscape::yaml {

/// A family of models: one value of a config's `model_type`.
struct HuggingFaceFamily {
  std::string_view name;
  /// Reads the keys that shape the computation. Before, only the model's name is set.
  void (*read)(HuggingFaceConfig& config, ModelSpec& model);
};
std::span<const HuggingFaceFamily> huggingface_families();
/// The family of that name, or null.
const HuggingFaceFamily* find_family(std::string_view name);
/// Why a known family is not read, such as because of its experts; empty where the family is not known.
std::string_view refused_family(std::string_view name);

}  // namespace shardscape::yaml
