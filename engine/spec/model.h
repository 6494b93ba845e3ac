// A decoder-only transformer, by shape.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"

namespace shardscape {

enum class MlpKind : std::uint8_t { gelu, swiglu };
SHARDSCAPE_ENUM_NAMES(MlpKind, "gelu", "swiglu");
enum class NormKind : std::uint8_t { layernorm, rmsnorm };
SHARDSCAPE_ENUM_NAMES(NormKind, "layernorm", "rmsnorm");
enum class PositionKind : std::uint8_t { learned, rotary };
SHARDSCAPE_ENUM_NAMES(PositionKind, "learned", "rotary");

/// Shapes are per model, never per rank. YAML keys carry the same names.
struct ModelSpec {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;    ///< = heads for multi-head attention; YAML default: heads
  std::int64_t head_dim = 0;    ///< YAML default: hidden / heads
  std::int64_t ffn_hidden = 0;  ///< width of the MLP (of each of gate and up for swiglu)
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;  ///< rows of the learned position table; 0 with rotary positions
  MlpKind mlp = MlpKind::gelu;
  NormKind norm = NormKind::layernorm;
  PositionKind position = PositionKind::learned;
  bool tied_embeddings = false;  ///< the LM head shares the embedding's weights
  bool linear_bias = false;      ///< every linear layer of a block has a bias
  bool qkv_bias = false;         ///< the QKV projection alone has a bias (Qwen2)
  double dropout = 0;            ///< probability; > 0 adds dropout operators and their masks to training

  [[nodiscard]] std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  [[nodiscard]] std::int64_t attention_width() const { return heads * head_dim; }
  /// Output columns of the first MLP projection: ffn_hidden, twice that for swiglu (gate and up).
  [[nodiscard]] std::int64_t mlp_in_width() const {
    return mlp == MlpKind::swiglu ? 2 * ffn_hidden : ffn_hidden;
  }

  /// Weights of the four matrices of one block.
  [[nodiscard]] double block_matrix_parameters() const;
  /// Norm gains and biases and linear biases of one block.
  [[nodiscard]] double block_vector_parameters() const;
  /// Those of them that belong to columns: biases of the QKV and the first MLP projection.
  [[nodiscard]] double block_column_biases() const;
  [[nodiscard]] double position_parameters() const;   ///< the learned position table
  [[nodiscard]] double embedding_parameters() const;  ///< token and learned position tables
  [[nodiscard]] double head_parameters() const;       ///< 0 when tied
  [[nodiscard]] double final_norm_parameters() const;
  [[nodiscard]] double parameters() const;  ///< whole model

  /// Every rule that is broken, by field.
  [[nodiscard]] Problems validate() const;
};

}  // namespace shardscape
