// A decoder-only transformer, by shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/spec/mixture_of_experts.h"

namespace shardscape {

/// `attention: {kind: ...}` of a model file. A model without the key has one set of keys and values per head or per
/// group of heads.
enum class AttentionKind : std::uint8_t { mla };

/// The latent attention of a model. YAML keys carry the same names; rows say what they are (model_numbers.cc).
struct LatentAttention {
  AttentionKind kind = AttentionKind::mla;
  std::int64_t q_rank = 0, kv_rank = 0;
  std::int64_t rope_dim = 0, nope_dim = 0, value_dim = 0;

  [[nodiscard]] std::int64_t query_dim() const { return nope_dim + rope_dim; }
  /// Values that a token leaves in the cache, per layer.
  [[nodiscard]] std::int64_t cached() const { return kv_rank + rope_dim; }
};

/// The activation of the MLP: one projection in and one out, or, for the names in -glu, gated (two in, one
/// out; Shazeer 2020, GLU Variants Improve Transformer, arXiv:2002.05202).
enum class MlpKind : std::uint8_t { gelu, swiglu, relu, silu, geglu, reglu, squared_relu };
enum class NormKind : std::uint8_t { layernorm, rmsnorm };
/// Where the norms of a block are: on what goes into attention and MLP (as in GPT-2), on what comes out of
/// them before it is added to the residual stream (OLMo 2, arXiv:2501.00656, section 2), or both (Gemma 2,
/// arXiv:2408.00118, section 2).
enum class NormPlace : std::uint8_t { before, after, both };
/// Norms of queries and keys ahead of their products (Dehghani et al. 2023, arXiv:2302.05442, section 2):
/// each head by itself with gains that all heads share (Qwen3, Gemma 3), or the whole width at once (OLMo 2).
enum class QkNorm : std::uint8_t { none, per_head, full_width };
/// alibi: a bias on the scores that grows with the distance (Press et al. 2022, arXiv:2108.12409); no table
/// and no parameters.
enum class PositionKind : std::uint8_t { learned, rotary, alibi };

/// The shape of a model; all sizes are of the whole model, never of a rank. YAML keys carry the same names.
struct ModelSpec {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< = heads for multi-head attention; YAML default: heads
  std::int64_t head_dim = 0;  ///< YAML default: hidden / heads
  /// Width of the MLP (of each of gate and up where it is gated), of layers without experts. YAML default where
  /// all have them: expert_ffn_hidden.
  std::int64_t ffn_hidden = 0;
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;  ///< rows of the learned position table; 0 with rotary positions
  MlpKind mlp = MlpKind::gelu;
  NormKind norm = NormKind::layernorm;
  bool norm_bias = true;  ///< layernorm has a bias beside the gain (not in MPT); rmsnorm never has one
  NormPlace norm_place = NormPlace::before;
  QkNorm qk_norm = QkNorm::none;
  PositionKind position = PositionKind::learned;
  double rotary_fraction = 1;  ///< share of each head's dimensions that rotary positions turn
  /// No time depends on these; frameworks are told them. 0: not known. The base of the angles of rotary positions, the
  /// factor by which Llama 3.1 stretches them, and what norms add to a variance.
  std::int64_t rotary_base = 0;
  double rotary_scaling = 0, norm_epsilon = 0;
  /// Tokens of the longest sequence that the model is published for; longer ones are predicted, with a warning. 0: not
  /// known.
  std::int64_t context = 0;
  /// In layers with a window a token attends to this many last tokens, itself included; 0: to all before it.
  std::int64_t sliding_window = 0;
  /// Which layers have the window: `L` (local) or `G` (global) for each, from the first on and again from the
  /// start where it ends (Gemma 2: LG, Gemma 3: LLLLLG). Empty: all of them.
  std::string window_pattern;
  /// Every softmax of attention has one more score, learned for each head, that no value belongs to (gpt-oss,
  /// arXiv:2508.10925, section 2).
  bool attention_sinks = false;
  /// Published weights of 8 bits have a scale for each block of 128 x 128 values rather than for each tensor
  /// (weight_block_size of their quantization_config), and inputs one for each 128 of a row.
  bool fp8_block_scales = false;
  /// Scores, and logits, go through cap * tanh(x / cap) (Gemma 2, arXiv:2408.00118, section 2).
  bool attention_soft_cap = false;
  bool logit_soft_cap = false;
  /// Attention and MLP of a block read the same input and are added together (Wang & Komatsuzaki 2021,
  /// GPT-J-6B; Black et al. 2022, GPT-NeoX-20B, arXiv:2204.06745, section 2.1).
  bool parallel_residual = false;
  bool shared_norm = false;      ///< with parallel_residual: one norm feeds both (GPT-J), not one each (NeoX)
  bool embedding_norm = false;   ///< a norm on the embedding's output (BLOOM)
  bool tied_embeddings = false;  ///< the LM head shares the embedding's weights
  bool head_bias = false;        ///< an untied LM head has a bias (GPT-J, Phi-2)
  bool linear_bias = false;      ///< every linear layer of a block has a bias: the three below at once
  bool qkv_bias = false;         ///< the QKV projection has a bias (Qwen2)
  bool output_bias = false;      ///< the output projection of attention has a bias
  bool mlp_bias = false;         ///< both projections of the MLP have a bias
  double dropout = 0;            ///< probability; > 0 adds dropout operators and their masks to training
  std::optional<double> attention_dropout;  ///< dropout of the attention probabilities; absent: `dropout`
  std::optional<double> embedding_dropout;  ///< dropout of the embedding's output; absent: `dropout`
  std::optional<MixtureOfExperts> moe;      ///< present: layers have experts in place of one MLP
  /// Present: all layers have latent attention, and kv_heads and head_dim mean nothing.
  std::optional<LatentAttention> latent;

  [[nodiscard]] bool gated() const {
    return mlp == MlpKind::swiglu || mlp == MlpKind::geglu || mlp == MlpKind::reglu;
  }
  [[nodiscard]] bool has_qkv_bias() const { return linear_bias || qkv_bias; }
  [[nodiscard]] bool has_output_bias() const { return linear_bias || output_bias; }
  [[nodiscard]] bool has_mlp_bias() const { return linear_bias || mlp_bias; }
  /// Vectors of hidden size in one norm: a gain, and a bias where it has one.
  [[nodiscard]] double norm_vectors() const { return norm == NormKind::layernorm && norm_bias ? 2 : 1; }
  /// Number of norms in one block, those of queries and keys not counted.
  [[nodiscard]] double block_norms() const {
    return (shared_norm ? 1 : 2) * (norm_place == NormPlace::both ? 2 : 1);
  }
  /// Gains and biases of the norms of queries and keys of one block.
  [[nodiscard]] double qk_norm_parameters() const;
  [[nodiscard]] std::int64_t qk_width() const { return (heads + kv_heads) * head_dim; }
  [[nodiscard]] std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  [[nodiscard]] std::int64_t attention_width() const { return heads * head_dim; }
  /// Output columns of the first MLP projection: ffn_hidden, twice that where it is gated (gate and up).
  [[nodiscard]] std::int64_t mlp_in_width() const { return gated() ? 2 * ffn_hidden : ffn_hidden; }

  /// Number of layers with experts; 0 for a model without any.
  [[nodiscard]] std::int64_t expert_layers() const { return moe ? moe->in_layers(layers) : 0; }

  /// Matrix weights of one block without experts, and of the attention alone.
  [[nodiscard]] double block_matrix_parameters() const;
  [[nodiscard]] double attention_matrix_parameters() const;
  /// Norm gains and biases and linear biases of one block without experts.
  [[nodiscard]] double block_vector_parameters() const;
  /// The part of these parameters that is split with the columns: biases of the QKV and of the first MLP projection.
  [[nodiscard]] double block_column_biases() const;
  /// Parameters of the MLP part of a layer with `experts` experts: those, the shared ones and the router.
  [[nodiscard]] double expert_layer_parameters(std::int64_t experts) const;
  [[nodiscard]] double position_parameters() const;  ///< the learned position table
  /// The norm on the embedding's output, 0 without one.
  [[nodiscard]] double embedding_norm_parameters() const;
  /// Token and learned position tables, and the norm on the embedding's output.
  [[nodiscard]] double embedding_parameters() const;
  [[nodiscard]] double head_parameters() const;  ///< 0 when tied
  [[nodiscard]] double final_norm_parameters() const;
  /// Parameters of the whole model, without the modules that predict further tokens.
  [[nodiscard]] double parameters() const;
  /// Parameters that each token meets: the top_k experts of each layer, and the head; of the embedding it reads one
  /// row.
  [[nodiscard]] double active_parameters() const;

  /// Why the model cannot take a sequence of `tokens` (more than its table of learned positions has); empty where it
  /// can.
  [[nodiscard]] std::string too_long(std::int64_t tokens) const;
  /// Lists every broken rule, by field.
  [[nodiscard]] Problems validate() const;

 private:
  [[nodiscard]] double mlp_parameters() const;  ///< the MLP of one block without experts, with biases
  [[nodiscard]] double blocks_with(std::int64_t experts) const;
  void check_windows(Problems& problems) const;
  void check_experts(Problems& problems) const;
  void check_latent(Problems& problems) const;
};

}  // namespace shardscape
