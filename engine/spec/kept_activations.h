// What training keeps of a block from forward to backward: the parts that `recompute: selective` computes again
// instead, and the formats of tensors that are kept narrower than they are computed.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"

namespace shardscape {

/// Parts of a block. Megatron Core's names (--recompute-modules) in brackets.
///   attention_core  scores, softmax and their product with the values (core_attn)
///   norms           those ahead of products, of latent vectors, too (layernorm: without the latter)
///   latent_up       queries, keys and values out of their latent vectors, rotary positions (mla_up_proj)
///   activations     the nonlinearity between the products of an MLP, of experts and dense ones (moe_act: of experts)
///   mlp             all of the MLP of layers without experts, with what its tensor group sends (mlp)
///   experts         all of layers of experts behind the norm, with dispatch and combine (moe)
enum class RecomputePart : std::uint8_t { attention_core, norms, latent_up, activations, mlp, experts };

/// The format in which a tensor is kept from forward to backward. It holds where products are of 8 bits or fewer;
/// elsewhere all is kept as it is computed.
///   computed  as it is computed
///   fp8       a byte
///   e5m6      12 bits: five of the exponent, six of the mantissa (DeepSeek-V3, arXiv:2412.19437, section 3.3.3)
enum class KeptFormat : std::uint8_t { computed, fp8, e5m6 };

/// Bytes kept per value, which takes `computed` bytes where it is computed. Scales are left out (four bytes for each
/// 128 values, 3 % of fp8).
constexpr double kept_value_bytes(KeptFormat format, double computed) {
  switch (format) {
    case KeptFormat::fp8:
      return 1;
    case KeptFormat::e5m6:
      return 1.5;
    case KeptFormat::computed:
      break;
  }
  return computed;
}

}  // namespace shardscape
