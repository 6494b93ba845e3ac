// What families of Hugging Face configs have in common: shapes, biases, rates of dropout, windows, positions.
#pragma once

#include <cstdint>
#include <string>

#include "sweep/yaml/huggingface_config.h"

namespace shardscape::yaml::huggingface {

/// Biases of which of the linear layers.
struct Biases {
  bool qkv = false, output = false, mlp = false;
};

void set_biases(ModelSpec& m, const Biases& b);
/// One flag for all of them.
void read_bias(HuggingFaceConfig& config, const char* key, bool biased, ModelSpec& m);
/// Biases of all projections of attention, where the config has them.
void attention_bias(HuggingFaceConfig& config, ModelSpec& m);

/// Rates of dropout: what a family calls them (null where it has none) and what they are where they are
/// absent.
struct Dropouts {
  const char* residual = nullptr;
  const char* attention = nullptr;
  const char* embedding = nullptr;
  double rate = 0;
  double attention_rate = 0;
};

void read_dropouts(HuggingFaceConfig& config, const Dropouts& d, ModelSpec& m);

/// The names of the shapes.
struct Shapes {
  HuggingFaceNames layers = "num_hidden_layers";
  HuggingFaceNames hidden = "hidden_size";
  HuggingFaceNames heads = "num_attention_heads";
  const char* ffn_hidden = "intermediate_size";
  bool four_times = false;  ///< the MLP is 4 x hidden where that key is absent or null
};

void read_shapes(HuggingFaceConfig& config, const Shapes& keys, ModelSpec& m);

void tied(HuggingFaceConfig& config, bool otherwise, ModelSpec& m);
/// Heads without a width of their own divide the hidden size.
void require_whole_heads(HuggingFaceConfig& config, const char* key, const ModelSpec& m);
void grouped_queries(HuggingFaceConfig& config, ModelSpec& m);
/// The share of rotary dimensions: a key of its own, or one inside `rope_parameters` (transformers 5).
void rotary(HuggingFaceConfig& config, const char* key, double fraction, ModelSpec& m);
/// A gated MLP with the activation of that key.
void gated(HuggingFaceConfig& config, const char* key, MlpKind otherwise, ModelSpec& m);

/// Gives the layers of a pattern their window: the pattern that says it shortest.
void set_window(std::int64_t window, std::string pattern, ModelSpec& m);
/// `sliding_window` of the layers that `layer_types` names, or else of those of `pattern`.
void read_window(HuggingFaceConfig& config, std::int64_t otherwise, const std::string& pattern, ModelSpec& m);

/// RMSNorm, gated MLP, rotary positions and grouped queries: what llama and its kin share.
void read_llama_block(HuggingFaceConfig& config, ModelSpec& m);

}  // namespace shardscape::yaml::huggingface
