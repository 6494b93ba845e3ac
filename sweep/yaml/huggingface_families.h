// The families of models whose Hugging Face configs are read, in one table.
#pragma once

#include <span>
#include <string_view>

#include "sweep/yaml/huggingface_config.h"

namespace shardscape::yaml {

/// One value of a config's `model_type`.
struct HuggingFaceFamily {
  std::string_view name;
  /// Reads what shapes the computation. The caller has set nothing but the model's name.
  void (*read)(HuggingFaceConfig& config, ModelSpec& model);
};
std::span<const HuggingFaceFamily> huggingface_families();
/// The family of that name, or null.
const HuggingFaceFamily* find_family(std::string_view name);
/// Why a family that is known is not read, such as for its experts; empty where it is not known.
std::string_view refused_family(std::string_view name);

}  // namespace shardscape::yaml
