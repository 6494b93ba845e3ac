// Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, arXiv:2405.04434, section 2.1): keys and values
// of all heads come out of one small vector per token, which is what the cache keeps.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"

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

}  // namespace shardscape
