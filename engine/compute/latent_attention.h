// Latent attention (MLA; DeepSeek-V2, arXiv:2405.04434, section 2.1): the cache holds one compressed vector of
// kv_rank values and rope_dim rotated ones for each token, which all heads share.
//
// prompts  Keys and values are expanded for each head, of nope_dim + rope_dim and of value_dim values, and the
//          kernel is that of other prompts (fused_attention.h):
//
//            block = start + rows x keys x SMs x ((1 / exponentials)^q + (FLOPs of a score / products)^q)^(1/q)
//            time  = call + max(longest, sum / SMs + longest / 2 x min(1, blocks / SMs)) + preparation
//
//          preparation streams Q, K, V and O and appends to the cache. With a cache of one byte Q, K and V are
//          converted first, and Blackwell multiplies them in that type.
// decode   The expansion is absorbed into the queries: scores over kv_rank + rope_dim values, sums over kv_rank
//          ones, one cache for all heads. A CTA (from Hopper on a pair of SMs) takes up to 64 heads (128 on
//          Blackwell) of a sequence and part of its keys:
//
//            CTA  = start + heads x term + steps of 64 keys x (step + heads x term)
//            time = call + ((rounds x CTA + merge where keys are cut)^4 + HBM^4)^(1/4)
//
//          On Ampere keys are never cut, so that one sequence takes 121 ns for each of its tokens whatever the
//          batch, and two CTAs that share a pair of SMs slow each other down. 17 to 32 heads on Blackwell take
//          a kernel that is 1.65 times as slow.
//
// Fitted to 600 kernels of TensorRT-LLM on A100, H100, H200, B200 and GB200 (AIConfigurator's tables, NVIDIA
// 2025), one set of constants for an architecture. Of shapes held out of a fit those over 20 us are off in the
// median by 3 to 6 % (prompts) and by 2 to 9 % (decode).
#pragma once

#include "engine/compute/pointwise.h"

namespace shardscape::compute {

/// One call on one rank. The default widths are DeepSeek-V3's; the time of a step scales with the width.
struct LatentShape {
  double batch = 0;      ///< sequences
  double heads = 0;      ///< heads on this rank
  double queries = 0;    ///< query tokens per sequence; decode: 1
  double keys = 0;       ///< key tokens per sequence
  double visible = 0.5;  ///< share of the pairs that the mask leaves: 0.5 causal, 1 full
  double kv_rank = 512, rope_dim = 64, nope_dim = 128, value_dim = 128;

  /// Values that the cache holds per token.
  [[nodiscard]] double cached() const { return kv_rank + rope_dim; }
};

/// Whole prompts with expanded keys and values, as one kernel in bf16; `cache` is the type of the cache. A device of no
/// known architecture has Ampere's constants.
OperatorCost latent_prompt(const LatentShape& shape, Precision cache, const DeviceSpec& device);

/// Decodes one more token per sequence, with absorbed projections; shape.keys counts the new token.
OperatorCost latent_decode(const LatentShape& shape, Precision cache, const DeviceSpec& device);

}  // namespace shardscape::compute
