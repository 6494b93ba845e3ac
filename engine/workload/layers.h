// From (model, plan, workload) to the operator lists of a block, the embedding and the head, on one rank.
//
// Parallelisation after Shoeybi et al. 2019 (column- then row-parallel pairs over the tensor group) and
// Korthikanti et al. 2022 (sequence parallelism: norms, dropouts and residuals hold 1/tp of the tokens;
// all-reduces become all-gather and reduce-scatter). Context parallelism splits the sequence of every
// operator and passes keys and values round a ring (Liu et al. 2023, Ring Attention) with a causally balanced
// assignment (each rank holds one early and one late piece). KV heads are replicated where tp > kv_heads.
//
// A parallel block (ModelSpec::parallel_residual) reduces the sum of attention and MLP once instead of each
// by itself, as GPT-NeoX does (Andonian et al. 2021, its "gpt_j_residual"): one call fewer in each forward
// pass; with a shared norm also one gather fewer, and one reduction fewer in backward. Its sums are two
// kernels, as in GPT-NeoX and in transformers. Left out: QKV and the first MLP product as one matrix (PaLM).
//
// Biases take no time of their own: cuBLASLt adds them and sums up their gradients in the epilogues of the
// products (CUBLASLT_EPILOGUE_BIAS and _BGRADB). They count as parameters wherever parameters do.
//
// The saved bytes add up to the closed forms of Korthikanti et al. 2022: 34 s b h + 5 a s^2 b per block and
// its TP, SP and selective variants.
#pragma once

#include <vector>

#include "engine/spec/scenario.h"
#include "engine/workload/operator.h"

namespace shardscape::workload {

/// The share of a plan that shapes one rank's operators; plans that agree in it share their costs.
struct LayerKey {
  std::int32_t tensor = 1;
  std::int32_t context = 1;
  std::int32_t microbatch = 1;  ///< sequences
  bool sequence_parallel = false;
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};

/// Whether operators keep what backward needs.
enum class Mode : std::uint8_t { training, prefill };

/// `tokens`: sequence length (training) or prompt length (prefill) of each of key.microbatch sequences.
std::vector<Operator> block_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                      Mode mode);
std::vector<Operator> embedding_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                          Mode mode);
/// Final norm, LM head and, in training, the fp32 cross-entropy. Prefill computes the head for the last token
/// of each sequence only.
std::vector<Operator> head_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                     Mode mode);

/// One decode step: key.microbatch sequences, one new token each, `cached` earlier tokens.
std::vector<Operator> decode_block_operators(const Setting& setting, const LayerKey& key, double cached);
std::vector<Operator> decode_embedding_operators(const Setting& setting, const LayerKey& key);
std::vector<Operator> decode_head_operators(const Setting& setting, const LayerKey& key);

/// KV heads held by each rank of a tensor group: kv_heads / tp, at least 1.
std::int64_t local_kv_heads(const ModelSpec& model, std::int32_t tensor);

/// Bytes that a stage boundary passes per microbatch and rank.
Bytes boundary_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens);

/// Saved bytes of one block: everything, selective, or full recompute (its input).
Bytes saved_bytes(const std::vector<Operator>& operators, Recompute recompute, const Setting& setting,
                  const LayerKey& key, std::int64_t tokens);

/// What one block's forward holds in an iteration of a server: `tokens` of all its sequences, whose queries
/// meet `pairs` keys in all, each those of its own sequence.
Bytes serving_block_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens, double pairs);

/// What a block keeps between its input gradient and a weight gradient that is put off: the input of every
/// matrix product and the gradient of its output; 32 s b h for GPT (Qi et al. 2023, table 1).
Bytes put_off_bytes(const std::vector<Operator>& operators, const Setting& setting);

/// Bytes that live for a moment while one block runs backward, beside what is saved: four tensors of the
/// hidden width over all tokens of the tensor group (a gathered input and its gradient, the gradient of the
/// residual stream before and after), and the gradients of every tensor of the MLP's inner width.
Bytes backward_working_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens);

/// Live bytes of logits and their gradient while the loss of one microbatch is computed on one rank.
Bytes logits_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens);

/// What of them is kept where the backward does not follow at once: the fp32 probabilities, or the logits
/// themselves where the loss is fused.
Bytes saved_logits_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens);

/// Matrix FLOPs of forward and backward of one sequence over the whole model, attention counted in full
/// (Narayanan et al. 2021, appendix; the convention behind published MFU figures).
Flops model_flops_per_sequence(const ModelSpec& model, std::int64_t tokens);

}  // namespace shardscape::workload
