// Reads a Hugging Face config by the row of its family.
#pragma once

#include "sweep/yaml/huggingface_families.h"

namespace shardscape::yaml::huggingface {

/// Reads the keys that shape the computation. Before, only the model's name is set.
void read_family(HuggingFaceConfig& config, const Family& family, ModelSpec& m);

}  // namespace shardscape::yaml::huggingface
