// Parts that families of Hugging Face configs share: shapes, biases, dropout rates, windows, positions.
#pragma once

#include <cstdint>
#include <string>

#include "sweep/yaml/huggingface_config.h"

namespace shardscape::yaml::huggingface {

/// Which of the linear layers have biases.
struct Biases {
  bool qkv = false, output = false, mlp = false;
};

void set_biases(ModelSpec& m, const Biases& b);
/// Reads one flag for the biases of all linear layers; `biased` is its default.
void read_bias(HuggingFaceConfig& config, const char* key, bool biased, ModelSpec& m);
/// Reads the flag for biases of all projections of attention, if the config has it.
void attention_bias(HuggingFaceConfig& config, ModelSpec& m);

/// A family's names of dropout rates (null where it has none), and their defaults.
struct Dropouts {
  const char* residual = nullptr;
  const char* attention = nullptr;
  const char* embedding = nullptr;
  double rate = 0;
  double attention_rate = 0;
};

void read_dropouts(HuggingFaceConfig& config, const Dropouts& d, ModelSpec& m);

/// A family's names of the keys with the shapes.
struct Shapes {
  HuggingFaceNames layers = "num_hidden_layers";
  HuggingFaceNames hidden = "hidden_size";
  HuggingFaceNames heads = "num_attention_heads";
  const char* ffn_hidden = "intermediate_size";
  bool four_times = false;  ///< the MLP is 4 x hidden where that key is absent or null
};

void read_shapes(HuggingFaceConfig& config, const Shapes& keys, ModelSpec& m);

void tied(HuggingFaceConfig& config, bool otherwise, ModelSpec& m);
/// Reports heads whose number does not divide the hidden size, where they have no width of their own.
void require_whole_heads(HuggingFaceConfig& config, const char* key, const ModelSpec& m);
void grouped_queries(HuggingFaceConfig& config, ModelSpec& m);
/// Reads the share of rotary dimensions from a key of its own or inside `rope_parameters` (transformers 5).
void rotary(HuggingFaceConfig& config, const char* key, double fraction, ModelSpec& m);
/// Reads a gated MLP whose activation is in that key.
void gated(HuggingFaceConfig& config, const char* key, MlpKind otherwise, ModelSpec& m);

/// Sets the window of the layers in a pattern, which is stored in its shortest form.
void set_window(std::int64_t window, std::string pattern, ModelSpec& m);
/// Reads `sliding_window` for the layers that `layer_types` names, or else for those of `pattern`.
void read_window(HuggingFaceConfig& config, std::int64_t otherwise, const std::string& pattern, ModelSpec& m);

/// Reads RMSNorm, gated MLP, rotary positions and grouped queries, which llama and its relatives share.
void read_llama_block(HuggingFaceConfig& config, ModelSpec& m);

}  // namespace shardscape::yaml::huggingface
