// The blocks of a transformer on one rank: which kinds of block a model has, and what a block of each kind computes,
// sends, keeps for backward and holds as parameters. A kind of block combines a kind of attention with a kind of MLP;
// norms, residuals and the order of the parts are defined here.
//
// A parallel block (ModelSpec::parallel_residual) reduces the sum of attention and MLP once instead of each
// by itself, as GPT-NeoX does (Andonian et al. 2021, its "gpt_j_residual"): one call fewer in each forward
// pass; with a shared norm also one gather fewer, and one reduction fewer in backward. Its sums are two
// kernels, as in GPT-NeoX and in transformers. Left out: QKV and the first MLP product as one matrix (PaLM).
//
// The saved bytes add up to the closed forms of Korthikanti et al. 2022: 34 s b h + 5 a s^2 b per block and
// its TP, SP and selective variants.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/model/attention/attention_block.h"
#include "engine/model/layer_key.h"
#include "engine/model/operator.h"
#include "engine/model/parameters.h"
#include "engine/model/stage_layers.h"
#include "engine/spec/scenario.h"
#include "engine/spec/verdict.h"

namespace shardscape::model {

class AttentionBlock;
class MlpBlock;

struct BlockKind {
  const AttentionBlock& attention;
  const MlpBlock& mlp;
};

class BlockKinds {
 public:
  void add(const BlockKind& kind) { kinds_[size_++] = &kind; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const BlockKind& operator[](std::size_t kind) const { return *kinds_[kind]; }

 private:
  std::array<const BlockKind*, kMostBlockKinds> kinds_{};
  std::size_t size_ = 0;
};

/// The kinds of a model's blocks, at most kMostBlockKinds; elsewhere a kind is an index into this list.
BlockKinds block_kinds(const ModelSpec& model);
/// How many blocks of each kind the model has.
StageLayers all_layers(const ModelSpec& model);
/// The kind of layer `layer`, counted from 0, and the blocks of `count` layers from `first` on.
std::size_t kind_of_layer(const ModelSpec& model, std::int64_t layer);
StageLayers layers_between(const ModelSpec& model, std::int32_t first, std::int32_t count);

/// The operators of one block, for `tokens` (training: sequence length, prefill: prompt length) in each of
/// key.microbatch sequences.
std::vector<Operator> block_operators(const Setting& setting, std::size_t kind, const LayerKey& key,
                                      std::int64_t tokens, Mode mode);
/// The operators of one block in a decode step: key.microbatch sequences with one new token and `cached` earlier tokens
/// each.
std::vector<Operator> decode_block_operators(const Setting& setting, std::size_t kind, const LayerKey& key,
                                             double cached);

/// Bytes that a stage boundary passes per microbatch and rank.
Bytes boundary_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens);

/// Saved bytes of one block: everything, what the stack's selective recompute leaves, or full recompute (its input).
Bytes saved_bytes(const std::vector<Operator>& operators, Recompute recompute, const Setting& setting,
                  const LayerKey& key, std::int64_t tokens);

/// Bytes that the forward of one block holds in a server's iteration over `tokens` tokens per sequence; the queries of
/// all sequences meet `pairs` keys in total, each those of its own sequence.
Bytes serving_block_bytes(const Setting& setting, std::size_t kind, const LayerKey& key, std::int64_t tokens,
                          double pairs);

/// Bytes that a layer keeps from its input gradient to a weight gradient that is put off: input and output gradient of
/// every matrix product that is cut; for a GPT block 32 s b h (Qi et al. 2023, table 1).
Bytes put_off_bytes(const std::vector<Operator>& operators);

/// Bytes that live for a moment while one block runs backward, beside what is saved: four tensors of the
/// hidden width over all tokens of the tensor group (a gathered input and its gradient, the gradient of the
/// residual stream before and after), and the gradients of every tensor of the MLP's inner width, or what
/// attention over context ranks works in (OperatorBuilder::merge_ring()) where that is more.
Bytes backward_working_bytes(const Setting& setting, std::size_t kind, const LayerKey& key,
                             std::int64_t tokens);

/// The most tokens that a token attends to in a block of that kind, itself included; 0: all tokens up to it.
double attention_window(const ModelSpec& model, std::size_t kind);
/// How many of a sequence's `tokens` a block keeps in its cache: those of its window.
double cached_tokens(const ModelSpec& model, std::size_t kind, double tokens);
/// AttentionBlock::launches(), mean over the blocks.
double launches(const ModelSpec& model);
/// The key-value cache of one token in one block.
KvUnits kv_units(const ModelSpec& model, std::size_t kind);
/// Bytes of one unit of the cache, and of all units that each rank of a tensor group holds, per token.
Bytes kv_unit_bytes(const Setting& setting, std::size_t kind);
Bytes kv_bytes(const Setting& setting, std::size_t kind, std::int32_t tensor);

/// Parameters of one block on one rank, by the group that holds copies of them.
ParameterGroups block_parameters(const ModelSpec& model, const PrecisionPolicy& policy, std::size_t kind,
                                 const LayerKey& key);
/// Weights of one block of the whole model that a token is multiplied with.
double product_parameters(const ModelSpec& model, std::size_t kind);

/// The first rule that a tensor degree breaks. `splits_experts`: whether the tensor group splits routed experts too, as
/// it does unless the plan says otherwise.
Reason tensor_rule(const ModelSpec& model, std::int32_t tensor, bool splits_experts = true);

/// Matrix FLOPs of forward and backward of one sequence over the whole model, attention counted in full (Narayanan et
/// al. 2021, appendix; the convention behind published MFU figures). Counts the experts that a token goes through, and
/// the modules that predict further tokens. `of_attention`: share of the full attention that counts, 0..1; a causal
/// mask leaves one half.
Flops model_flops_per_sequence(const ModelSpec& model, std::int64_t tokens, double of_attention = 1);
/// What of these FLOPs is left with half of the attention, 0.5..1.
inline double causal_share(const ModelSpec& model, std::int64_t tokens) {
  return model_flops_per_sequence(model, tokens, 0.5) / model_flops_per_sequence(model, tokens);
}

}  // namespace shardscape::model
