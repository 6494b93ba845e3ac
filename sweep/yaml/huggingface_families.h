// The families of models whose Hugging Face configs are read: one table (huggingface_families.json), a row per family,
// which says how the family writes its config, and reading a config by its row.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "sweep/yaml/huggingface_config.h"

namespace shardscape::yaml::huggingface {

using Names = HuggingFaceNames;

/// A choice of the config; without a key it is fixed.
struct Flag {
  Names key = {};
  bool otherwise = false;  ///< value where the key is absent or null
};

struct KvHeads {
  Names key = "num_key_value_heads";
  std::int64_t otherwise = 0;  ///< where the config has no heads either; 0: as many as these
  Flag grouped = {{}, true};   ///< false: the heads are not grouped, and `key` counts for nothing
  Flag one = {};               ///< whether all heads share one then, or each has its own
};

/// Layers that may have biases, as bits.
enum BiasedLayers : unsigned { kQkv = 1, kOutput = 2, kMlp = 4, kNorms = 8 };
inline constexpr unsigned kAttention = kQkv | kOutput, kLinear = kAttention | kMlp;

struct Bias {
  unsigned layers = 0;
  Names key = {};
  bool otherwise = true;
  bool negated = false;  ///< the key says that there are none
};

/// Rates of dropout: the names of their keys and what counts without these.
struct Dropouts {
  Names residual = {}, attention = {}, embedding = {};
  double rate = 0;
  double attention_rate = 0;
};

/// How the order of tokens enters: ALiBi where that flag is set, else learned positions where there is a key for the
/// rows of their table, else rotary positions.
struct Positions {
  Flag alibi = {};
  Names rows = {};
  std::int64_t rows_otherwise = 0;         ///< 0: the key of the rows is required
  std::int64_t further_rows = 0;           ///< rows of the table ahead of the first token's
  Flag learned = {{}, true};               ///< where it is false, nothing tells the order, which is refused
  Names turned = "partial_rotary_factor";  ///< the share of a head's dimensions that rotary positions turn
  double turned_otherwise = 1;
  Names turned_dimensions = {};  ///< number of turned dimensions (default 64), in place of the share
};

struct Parallel {
  Flag residual = {};  ///< attention and MLP read the same input
  bool shared_norm = false;
  Names norms = {};  ///< how many norms a block with grouped queries has, which is always parallel (1 or 2)
};

struct SoftCap {
  Names key = {};
  double otherwise = 0;
  bool null_is_none = true;  ///< or else the same as absent
};

/// Windows, and of which layers: as `types` says, else from the `first` on, else as `period` or `pattern` says.
struct Window {
  Names key = {};
  std::int64_t otherwise = 0;
  bool null_is_none = true;       ///< or else the same as absent
  std::string_view pattern = {};  ///< pattern of the layers, as ModelSpec::window_pattern
  Names period = {};              ///< number of layers of which the last has no window
  std::int64_t period_otherwise = 0;
  Flag used = {{}, true};
  Names first = {};  ///< the first layer with one where it is used, 28 where it is absent
  Names types = "layer_types";
  std::string_view local = "sliding_attention", whole = "full_attention";
};

/// Experts, where `experts` has a name.
struct Experts {
  Names experts = {};
  Names top_k = "num_experts_per_tok";
  Names width = "moe_intermediate_size";
  Names dense_width = {};  ///< the width of layers without experts where the row's `ffn_hidden` is not
  Names first_dense = {}, every = {};
  Names shared = {};
  std::int64_t shared_otherwise = 0;
  bool shared_gate = false;
  Names shared_width = {};  ///< width of all shared experts together
  std::int64_t shared_width_otherwise = 0;
  Flag normalise_top_k = {};
  RouterKind router = RouterKind::softmax;
  bool router_bias = false;
  bool router_keys = false;  ///< keys say scores, biases and groups of the router (DeepSeek)
  Names mtp_layers = {};
  Names dense_layers = {};  ///< a list of single layers without experts; only the first ones are modelled
};

enum class Must : std::uint8_t { contain, be_true, be_one, be_hidden_size };

/// What a key that is no part of the shape must say, as nothing else is modelled.
struct Demand {
  Names key = {};
  Must must = Must::contain;
  std::string_view text = {};  ///< the text that it must contain, or the message where it is otherwise
};

/// A row of the table. What it leaves out is as llama has it; a name that it leaves empty is of a key that the family
/// does not have.
struct Family {
  std::string_view name;  ///< the config's `model_type`
  Names layers = "num_hidden_layers";
  Names hidden = "hidden_size";
  Names heads = "num_attention_heads";
  std::int64_t heads_otherwise = 0, vocabulary_otherwise = 0;  ///< 0: the key is required
  Names ffn_hidden = "intermediate_size";
  std::int64_t ffn_multiple = 0;  ///< hidden sizes that are its default; 0: the key is required
  Names ffn_multiple_key = {};
  KvHeads kv_heads = {};
  Names head_dim = "head_dim";
  std::int64_t head_dim_otherwise = 0;  ///< 0: hidden size / heads
  Names heads_at = "hidden_size";       ///< the key that is to blame where heads have no whole width
  bool tied = false;
  Names activation = "hidden_act";
  MlpKind mlp = MlpKind::silu;  ///< the activation where that key is absent
  bool gated = true;
  NormKind norm = NormKind::rmsnorm;
  NormPlace norm_place = NormPlace::before;
  QkNorm qk_norm = QkNorm::none;
  Flag qk_norm_used = {{}, true};
  bool embedding_norm = false;
  Positions positions = {};
  Dropouts dropouts = {{}, "attention_dropout", {}};
  std::array<Bias, 2> biases = {};
  bool head_bias = false;  ///< bias of a head that is not tied
  Parallel parallel = {};
  SoftCap attention_cap = {}, logit_cap = {};
  Window window = {};
  bool attention_sinks = false;
  bool latent = false;  ///< latent attention (DeepSeek)
  Experts experts = {};
  std::array<Demand, 3> demands = {};
  std::array<Names, 16> idle = {};  ///< keys without effect in this family
};

std::span<const Family> families();
/// The family that a config means: its `model_type`, or the one that has the same blocks.
std::string_view family_of(std::string_view model_type, std::string_view architecture);
/// Why a known family is not read, such as because of its experts; empty where the family is not known.
std::string_view refused_family(std::string_view name);

/// Reads the keys that shape the computation. Before, only the model's name is set.
void read_family(HuggingFaceConfig& config, const Family& family, ModelSpec& m);

}  // namespace shardscape::yaml::huggingface
