// The attention core: scores, softmax, weighted sum, without its projections.
//
// flash   one kernel, tiles in SRAM, the score matrix never reaches HBM (Dao 2023, FlashAttention-2,
//         arXiv:2307.08691). Matrix FLOPs per score and head: 4 d forward, 10 d backward (scores again, dP,
//         dV, dQ, dK). A causal mask halves the work.
//
//           time = kernels + max(products + softmax, FLOPs / (cap x peak), HBM)
//
//         products run at the sustained tensor rate, the exponentials and rescaling on the vector units
//         between them; cap is the best such kernels reach on the device (DeviceSpec::FusedAttention). Work
//         is cut into blocks of 128 rows of a head (queries forward, keys backward), one CTA each; fewer
//         blocks than SMs leave SMs idle. Q, K, V and O (backward: and their gradients) cross HBM once; the
//         KV heads once for all query heads that share them. Backward is three kernels (dO . O, the products,
//         the conversion of dQ).
// naive   batched products that write the score matrix, and streaming kernels for scale-mask-softmax and
//         dropout (Korthikanti et al. 2022, section 4.1). Per score: softmax reads and writes 2 bytes each,
//         dropout the same and a 1-byte mask; the backward of dropout moves 5 and that of softmax 6. The
//         causal mask saves nothing.
// decode  one query per sequence against a cache of keys and values: a stream of the cache, one CTA per
//         sequence and KV head. The query heads of a group share the stream; their products are padded to the
//         16 rows of a matrix instruction. An SM streams no faster than its port to L2. Where SMs would idle,
//         the keys are split among several CTAs, and a second kernel combines the fp32 parts (Dao et al.
//         2023, Flash-Decoding). Of all numbers of splits the fastest counts, as kernels look for it:
//         FlashAttention compares how well each number fills the SMs and takes the fewest that come close to
//         the best (num_splits_heuristic of its source), FlashInfer balances chunks of keys over the SMs (Ye
//         et al. 2025, arXiv:2501.01005, section 3.3). So one more SM never costs time.
//
// Left out: blocks on the causal diagonal, which kernels compute in full (`cap` accounts for them; under a window they
// count); the queries and outputs of decode.
#pragma once

#include <utility>

#include "engine/compute/pointwise.h"

namespace shardscape::compute {

/// Vector operations per score: scale, max, subtract, exp, sum, convert (the exponential counts as 4, the
/// rate of the special-function units).
inline constexpr double kSoftmaxFlops = 10;

/// The shape of one call of the attention core on one rank.
struct AttentionShape {
  double batch = 0;     ///< sequences
  double heads = 0;     ///< query heads on this rank
  double kv_heads = 0;  ///< KV heads on this rank
  double head_dim = 0;
  double queries = 0;    ///< query tokens per sequence on this rank
  double keys = 0;       ///< key tokens that a query may meet
  double visible = 0.5;  ///< share of query-key pairs that the mask leaves: 0.5 causal, 1 full
  bool dropout = false;  ///< naive only: a dropout kernel on the probabilities

  /// Decode only: elements per key and value together in the cache where they are not two of head_dim (latent
  /// attention: values are part of the keys). 0: 2 x head_dim.
  double cached_dim = 0;

  double score_flops = 0;  ///< vector FLOPs per score beside the softmax: ALiBi, soft caps

  /// Kernels that the keys are cut among, one after the other, where ring attention meets them so (in_pieces()).
  double pieces = 1;

  [[nodiscard]] double scores() const { return batch * heads * queries * keys; }
};

/// Causal attention over `pieces` kernels: the first has the rank's own keys, each other one those of another rank, of
/// which all queries see half, or half of the queries all: of causally balanced ranks (an early and a late chunk of the
/// sequence each) every step has one or the other, with equally many scores. The former is priced.
/// `cost(shape)`: of one kernel. Source: Transformer Engine, context_parallel.py (p2p).
template <class Cost>
OperatorCost in_pieces(AttentionShape shape, const Cost& cost) {
  const double others = std::exchange(shape.pieces, 1) - 1;
  if (others < 1) return cost(shape);
  shape.keys = shape.queries;
  OperatorCost sum = cost(shape);
  shape.keys /= 2;
  shape.visible = 1;
  const OperatorCost other = cost(shape);
  sum.time += others * other.time;
  sum.work += others * other.work;
  return sum;
}

OperatorCost flash_forward(const AttentionShape& shape, Precision precision, const DeviceSpec& device);
OperatorCost flash_backward(const AttentionShape& shape, Precision precision, const DeviceSpec& device);
OperatorCost naive_forward(const AttentionShape& shape, Precision precision, const DeviceSpec& device);
OperatorCost naive_backward(const AttentionShape& shape, Precision precision, const DeviceSpec& device);
/// Decodes one new token per sequence: shape.queries = 1, shape.keys = cached tokens per sequence; `kv_precision` is
/// the type of the cache and of the products.
OperatorCost decode(const AttentionShape& shape, Precision kv_precision, const DeviceSpec& device);
/// Decode with the keys of a sequence cut among `splits` CTAs, and the largest number of splits: each has at least a
/// block of keys. decode() is the fastest of all, found in time logarithmic in their number.
OperatorCost decode_split(const AttentionShape& shape, Precision kv_precision, const DeviceSpec& device,
                          double splits);
double most_decode_splits(const AttentionShape& shape);

}  // namespace shardscape::compute
