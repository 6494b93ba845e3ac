// The blocks of a transformer on one rank: which kinds a model has, and what a block of each computes, sends,
// keeps and weighs. A kind is a kind of attention and a kind of MLP; norms, residuals and the order of all
// are said here.
//
// A parallel block (ModelSpec::parallel_residual) reduces the sum of attention and MLP once instead of each
// by itself, as GPT-NeoX does (Andonian et al. 2021, its "gpt_j_residual"): one call fewer in each forward
// pass; with a shared norm also one gather fewer, and one reduction fewer in backward. Its sums are two
// kernels, as in GPT-NeoX and in transformers. Left out: QKV and the first MLP product as one matrix (PaLM).
//
// The saved bytes add up to the closed forms of Korthikanti et al. 2022: 34 s b h + 5 a s^2 b per block and
// its TP, SP and selective variants.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/kv_units.h"
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

/// Those of a model, at most kMostBlockKinds; elsewhere a kind is a place in this list.
std::span<const BlockKind> block_kinds(const ModelSpec& model);
/// How many blocks of each it has, in order.
StageLayers all_layers(const ModelSpec& model);
/// The kind of layer `layer`, from 0 on; those of `count` layers from `first` on.
std::size_t kind_of_layer(const ModelSpec& model, std::int64_t layer);
StageLayers layers_between(const ModelSpec& model, std::int32_t first, std::int32_t count);

/// `tokens`: sequence length (training) or prompt length (prefill) of each of key.microbatch sequences.
std::vector<Operator> block_operators(const Setting& setting, std::size_t kind, const LayerKey& key,
                                      std::int64_t tokens, Mode mode);
/// One decode step: key.microbatch sequences, one new token each, `cached` earlier tokens.
std::vector<Operator> decode_block_operators(const Setting& setting, std::size_t kind, const LayerKey& key,
                                             double cached);

/// Bytes that a stage boundary passes per microbatch and rank.
Bytes boundary_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens);

/// Saved bytes of one block: everything, what the stack's selective recompute leaves, or full recompute (its input).
Bytes saved_bytes(const std::vector<Operator>& operators, Recompute recompute, const Setting& setting,
                  const LayerKey& key, std::int64_t tokens);

/// What one block's forward holds in an iteration of a server: `tokens` of all its sequences, whose queries
/// meet `pairs` keys in all, each those of its own sequence.
Bytes serving_block_bytes(const Setting& setting, std::size_t kind, const LayerKey& key, std::int64_t tokens,
                          double pairs);

/// What a layer keeps between its input gradient and a weight gradient that is put off: the input of every
/// matrix product that is cut and the gradient of its output; of a block 32 s b h for GPT (Qi et al. 2023, table 1).
Bytes put_off_bytes(const std::vector<Operator>& operators);

/// Bytes that live for a moment while one block runs backward, beside what is saved: four tensors of the
/// hidden width over all tokens of the tensor group (a gathered input and its gradient, the gradient of the
/// residual stream before and after), and the gradients of every tensor of the MLP's inner width.
Bytes backward_working_bytes(const Setting& setting, std::size_t kind, const LayerKey& key,
                             std::int64_t tokens);

/// Earlier tokens and its own that a token meets at most in a block of that kind; 0: all.
double attention_window(const ModelSpec& model, std::size_t kind);
/// Tokens of a sequence of so many that a block keeps in its cache: those of its window.
double cached_tokens(const ModelSpec& model, std::size_t kind, double tokens);
/// What a token leaves in the key-value cache of a block.
KvUnits kv_units(const ModelSpec& model, std::size_t kind);
/// Bytes of one of the units, and of all that each rank of a tensor group holds.
Bytes kv_unit_bytes(const Setting& setting, std::size_t kind);
Bytes kv_bytes(const Setting& setting, std::size_t kind, std::int32_t tensor);

/// Of one block on one rank.
ParameterGroups block_parameters(const ModelSpec& model, const PrecisionPolicy& policy, std::size_t kind,
                                 const LayerKey& key);
/// Weights of a block that a token meets in products, of the whole model.
double product_parameters(const ModelSpec& model, std::size_t kind);

/// The first rule that a tensor degree breaks. `splits_experts`: whether the tensor group splits routed experts,
/// too, as it does without a plan's word for it.
Reason tensor_rule(const ModelSpec& model, std::int32_t tensor, bool splits_experts = true);

/// Matrix FLOPs of forward and backward of one sequence over the whole model, attention counted in full
/// (Narayanan et al. 2021, appendix; the convention behind published MFU figures). Of experts those that a token goes
/// through count, and the modules that predict further tokens.
Flops model_flops_per_sequence(const ModelSpec& model, std::int64_t tokens);

}  // namespace shardscape::model
