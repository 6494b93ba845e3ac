// Builds the operators, bytes and parameters of a block of each kind: attention and MLP append their operators, and
// what surrounds them (norms, residuals, casts) is added here.
#include "engine/model/block_kinds.h"

#include <algorithm>
#include <string>

#include "engine/model/attention/mha_gqa.h"
#include "engine/model/attention/mla.h"
#include "engine/model/mlp/dense.h"
#include "engine/model/mlp/moe.h"

namespace shardscape::model {

namespace {

const MhaGqa kMhaGqa{};
const MhaGqa kLocalMhaGqa{true};
const Mla kMla{};
const DenseMlp kDenseMlp{};
const ExpertMlp kExpertMlp{};

/// The places that blocks of models have, in the order of a model's kinds: a letter of ModelSpec::window_pattern, and
/// whether the layer has experts.
struct Place {
  char letter;
  bool experts;
  BlockKind of_heads, of_latent;
};
const Place kPlaces[] = {{'L', false, {kLocalMhaGqa, kDenseMlp}, {kMla, kDenseMlp}},
                         {'G', false, {kMhaGqa, kDenseMlp}, {kMla, kDenseMlp}},
                         {'G', true, {kMhaGqa, kExpertMlp}, {kMla, kExpertMlp}},
                         {'L', true, {kLocalMhaGqa, kExpertMlp}, {kMla, kExpertMlp}}};

/// The letter of all layers of a model without a pattern.
char usual_letter(const ModelSpec& model) { return model.sliding_window > 0 ? 'L' : 'G'; }

bool has(const ModelSpec& model, const Place& place) {
  const bool some =
      place.experts ? model.moe.has_value() : !model.moe || model.expert_layers() < model.layers;
  if (!some || model.window_pattern.empty()) return some && place.letter == usual_letter(model);
  return model.window_pattern.find(place.letter) <
         static_cast<std::size_t>(std::max<std::int64_t>(model.layers, 1));
}

const BlockKind& kind_of(const ModelSpec& model, std::size_t kind) { return block_kinds(model)[kind]; }

/// Bytes of a norm's output ahead of the tensor-parallel region.
Bytes own_input(const OperatorBuilder& b) { return Bytes(b.element() * b.own_tokens() * b.hidden()); }

/// Marks all operators from `first` on as recomputed selectively, of which only `input` of the first is kept.
void repeat_from(std::vector<Operator>& ops, std::size_t first, Bytes input) {
  for (std::size_t i = first; i < ops.size(); ++i) {
    ops[i].again = true;
    ops[i].input_again = ops[i].kind == OperatorKind::gemm;
    ops[i].saved_selective = Bytes(0);
  }
  ops[first].saved_selective = input;
}

/// y = x + attention(norm(x)), then y + mlp(norm(y)); the norms may instead stand on the outputs of attention and MLP,
/// or on both sides.
void append_sequential_block(std::vector<Operator>& ops, const BlockKind& kind, const OperatorBuilder& b) {
  const NormPlace place = b.model().norm_place;
  const bool before = place != NormPlace::after, after = place != NormPlace::before;
  if (before) ops.push_back(b.input_norm("input_norm"));
  kind.attention.append_operators(ops, b);
  ops.push_back(b.leave_tensor_region("attention_reduce"));
  if (after) ops.push_back(b.norm("attention_output_norm"));
  ops.push_back(b.residual("attention_residual", b.dropout()));
  if (before) ops.push_back(b.input_norm("mlp_norm"));
  const std::size_t first = ops.size();
  const bool region = kind.mlp.in_tensor_region(b);
  if (region) ops.push_back(b.enter_tensor_region("mlp_gather"));
  kind.mlp.append_operators(ops, b, b.gathered_input(b.policy().products));
  if (region) ops.push_back(b.leave_tensor_region("mlp_reduce"));
  if (b.repeats(kind.mlp.part())) repeat_from(ops, first, b.repeats_norms() ? Bytes(0) : own_input(b));
  if (after) ops.push_back(b.norm("mlp_output_norm"));
  ops.push_back(b.residual("mlp_residual", b.dropout()));
}

/// x + attention(norm(x)) + mlp(norm(x)), where the sum of both is reduced over the tensor group once, as GPT-NeoX
/// does. A shared norm has one output, which is gathered and kept once and whose gradient is reduced once; two norms
/// have two outputs, but one input that both keep for backward.
void append_parallel_block(std::vector<Operator>& ops, const BlockKind& kind, const OperatorBuilder& b) {
  const bool shared = b.model().shared_norm;
  ops.push_back(b.input_norm("input_norm"));
  kind.attention.append_operators(ops, b);
  const std::size_t first = ops.size() + (shared ? 0 : 1);
  if (!shared) {
    ops.push_back(b.norm_of_kept_input("mlp_norm"));
    ops.push_back(b.enter_tensor_region("mlp_gather"));
  }
  kind.mlp.append_operators(ops, b, shared ? Bytes(0) : b.gathered_input(b.policy().products));
  // The input is kept by another operator, or made again.
  const bool kept = b.repeats_norms() || (shared && !b.policy().casts());
  if (b.repeats(kind.mlp.part())) repeat_from(ops, first, kept ? Bytes(0) : own_input(b));
  ops.push_back(b.branch_sum("branch_sum"));
  ops.push_back(b.leave_tensor_region("block_reduce"));
  ops.push_back(b.residual("block_residual", false));
}

/// The cast of a product's input before it and, in backward, of its output's gradient. The traffic per microbatch of
/// the product's weights is counted in backward.
Operator cast_for(const Operator& product, const OperatorBuilder& b) {
  const StackProfile::Quantisation& stack = b.stack().quantisation;
  const double traffic = stack.passes * (bytes_per_element(b.policy().activations) +
                                         2 * b.policy().operand_bytes(product.operands));
  const compute::GemmShape& g = product.gemm;
  const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
  const auto products = static_cast<double>(g.batch);
  Operator op;
  op.name = "quantise";
  op.cast = true;
  op.forward = {Bytes(products * traffic * m * k), Flops(0), stack.passes > 0 ? 1.0 : 0.0};
  op.backward = {Bytes(products * (traffic * m * n + stack.weight_bytes * k * n)), Flops(0), 1};
  op.again = product.again || product.input_again;
  op.shared_expert = product.shared_expert;
  return op;
}

/// Inserts the casts of a training step before the products, where the stack has kernels of their own for them.
void add_casts(std::vector<Operator>& ops, const OperatorBuilder& b) {
  const StackProfile::Quantisation& stack = b.stack().quantisation;
  const bool own_kernels = stack.passes > 0 || stack.weight_bytes > 0;
  if (b.mode() != Mode::training || !b.policy().casts() || !own_kernels) return;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OperatorKind::gemm) continue;
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(i), cast_for(ops[i], b));
    ++i;
  }
}

/// Inserts the casts of servers whose activations are scaled as they come, block by block: one kernel before each
/// product. In fp8 those of mixtures of experts (DeepSeek-V3, arXiv:2412.19437, section 3.3; Qwen3's and GLM-4.5's fp8
/// checkpoints), whose shared experts use the cast of the routed ones; in fp4 those of dense models (TensorRT-LLM:
/// fp4_quantize, vLLM: scaled_fp4_quant). Checkpoints of mixtures have their experts alone in fp4, whose kernels cast.
void add_server_casts(std::vector<Operator>& ops, const OperatorBuilder& b) {
  const Precision narrow = b.policy().products;
  if (!b.serves() || narrow != (b.model().moe ? Precision::fp8 : Precision::fp4)) return;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OperatorKind::gemm || ops[i].operands != narrow || ops[i].name == "shared_in")
      continue;
    const compute::GemmShape& g = ops[i].gemm;
    Operator op;
    op.name = "quantise";
    op.cast = true;
    op.forward = {Bytes((b.element() + bytes_per_element(narrow)) *
                        static_cast<double>(g.m * g.k * (ops[i].grouped ? g.batch : 1))),
                  Flops(0), 1};
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(i), op);
    ++i;
  }
}

std::vector<Operator> operators_of(std::size_t kind, const OperatorBuilder& b) {
  std::vector<Operator> ops;
  ops.reserve(22);
  const bool parallel = b.model().parallel_residual;
  (parallel ? append_parallel_block : append_sequential_block)(ops, kind_of(b.model(), kind), b);
  add_casts(ops, b);
  add_server_casts(ops, b);
  return ops;
}

/// Tokens of one microbatch on one rank.
double local_tokens(const LayerKey& key, std::int64_t tokens) {
  return static_cast<double>(tokens) * key.microbatch / key.context;
}

/// Bytes of a block's input of one microbatch on one rank, with elements of type `precision`.
Bytes block_input(const Setting& setting, const LayerKey& key, std::int64_t tokens, Precision precision) {
  const double share = key.sequence_parallel ? 1.0 / key.tensor : 1.0;
  return Bytes(bytes_per_element(precision) * local_tokens(key, tokens) * share *
               static_cast<double>(setting.model.hidden));
}

}  // namespace

BlockKinds block_kinds(const ModelSpec& model) {
  BlockKinds kinds;
  for (const Place& place : kPlaces)
    if (has(model, place)) kinds.add(model.latent ? place.of_latent : place.of_heads);
  return kinds;
}

std::size_t kind_of_layer(const ModelSpec& model, std::int64_t layer) {
  const std::string& pattern = model.window_pattern;
  const char letter =
      pattern.empty() ? usual_letter(model) : pattern[static_cast<std::size_t>(layer) % pattern.size()];
  const bool experts = model.moe && model.moe->in_layer(layer);
  const auto before = [&](const Place& place) { return has(model, place); };
  const auto* const own = std::ranges::find_if(
      kPlaces, [&](const Place& place) { return place.letter == letter && place.experts == experts; });
  return static_cast<std::size_t>(std::count_if(std::begin(kPlaces), own, before));
}

StageLayers layers_between(const ModelSpec& model, std::int32_t first, std::int32_t count) {
  if (block_kinds(model).size() == 1) return {0, count};
  StageLayers layers;
  for (std::int32_t layer = first; layer < first + count; ++layer) layers.add(kind_of_layer(model, layer), 1);
  return layers;
}

StageLayers all_layers(const ModelSpec& model) {
  return layers_between(model, 0, static_cast<std::int32_t>(model.layers));
}

std::vector<Operator> block_operators(const Setting& setting, std::size_t kind, const LayerKey& key,
                                      std::int64_t tokens, Mode mode) {
  const auto count = static_cast<double>(tokens);
  return operators_of(kind, {setting, key, count, count, mode});
}

std::vector<Operator> decode_block_operators(const Setting& setting, std::size_t kind, const LayerKey& key,
                                             double cached) {
  // The ranks of a context group share the cache: a decode step splits the keys over them, not the query.
  LayerKey step = key;
  step.context = 1;
  step.sequence_parallel = false;
  return operators_of(kind, {setting, step, 1, cached / key.context, Mode::decode});
}

Bytes boundary_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  return block_input(setting, key, tokens, setting.policy().wire);
}

Bytes saved_bytes(const std::vector<Operator>& operators, Recompute recompute, const Setting& setting,
                  const LayerKey& key, std::int64_t tokens) {
  if (recompute == Recompute::full) return block_input(setting, key, tokens, setting.policy().activations);
  Bytes sum;
  for (const Operator& op : operators)
    sum += recompute == Recompute::selective ? op.saved_selective : op.saved;
  return sum;
}

Bytes serving_block_bytes(const Setting& setting, std::size_t kind, const LayerKey& key, std::int64_t tokens,
                          double pairs) {
  const auto count = static_cast<double>(tokens);
  const OperatorBuilder b(setting, key, count, count, Mode::prefill);
  Bytes sum;
  for (const Operator& op : operators_of(kind, b)) {
    const double rows = op.attention.heads * op.attention.queries;
    sum += op.attention_core
               ? op.saved_selective + b.core_bytes(rows, op.attention.heads * pairs / key.context)
               : op.saved;
  }
  return sum;
}

Bytes put_off_bytes(const std::vector<Operator>& operators) {
  Bytes sum;
  for (const Operator& op : operators) {
    if (op.kind != OperatorKind::gemm || !op.cut) continue;
    const double output =
        static_cast<double>(op.gemm.batch) * static_cast<double>(op.gemm.m) * static_cast<double>(op.gemm.n);
    sum += op.input + Bytes(op.shares_output_gradient ? 0 : operand_bytes(op.operands) * output);
  }
  return sum;
}

Bytes backward_working_bytes(const Setting& setting, std::size_t kind, const LayerKey& key,
                             std::int64_t tokens) {
  const ModelSpec& model = setting.model;
  const double hidden = 4 * static_cast<double>(model.hidden);
  const double inner = kind_of(model, kind).mlp.gradient_width(setting, key);
  const double element = bytes_per_element(setting.policy().gradients) * local_tokens(key, tokens);
  Bytes beside(element * inner);  // in the MLP, or, where that is more, in the attention of a ring
  if (key.context > 1) {
    for (const Operator& op : block_operators(setting, kind, key, tokens, Mode::training))
      beside = std::max(beside, op.working);
  }
  return Bytes(element * hidden) + beside;
}

double attention_window(const ModelSpec& model, std::size_t kind) {
  return kind_of(model, kind).attention.window(model);
}

double cached_tokens(const ModelSpec& model, std::size_t kind, double tokens) {
  return kind_of(model, kind).attention.cached(model, tokens);
}

double launches(const ModelSpec& model) {
  double sum = 0;
  for (const BlockRun& run : all_layers(model))
    sum += run.count * kind_of(model, run.kind).attention.launches();
  return sum / static_cast<double>(model.layers);
}

KvUnits kv_units(const ModelSpec& model, std::size_t kind) {
  return kind_of(model, kind).attention.kv(model);
}

Bytes kv_unit_bytes(const Setting& setting, std::size_t kind) {
  return Bytes(bytes_per_element(setting.policy().kv_cache) *
               static_cast<double>(kv_units(setting.model, kind).elements));
}

Bytes kv_bytes(const Setting& setting, std::size_t kind, std::int32_t tensor) {
  return static_cast<double>(kv_units(setting.model, kind).local(tensor)) * kv_unit_bytes(setting, kind);
}

ParameterGroups block_parameters(const ModelSpec& model, const PrecisionPolicy& policy, std::size_t kind,
                                 const LayerKey& key) {
  const double vectors = model.block_norms() * model.norm_vectors();
  const BlockKind& parts = kind_of(model, kind);
  ParameterGroups groups(
      ParallelGroup::data_shard,
      weights_of(parts.attention.parameters(model, key.tensor) + parts.mlp.parameters(model, key.tensor),
                 policy) +
          weights_of({0, vectors * static_cast<double>(model.hidden), vectors}, policy));
  // Experts that are not folded have their copies on the data shard group, as everything else.
  const bool folded = key.expert * key.expert_tensor > 1;
  groups[folded ? ParallelGroup::expert_data : ParallelGroup::data_shard] +=
      weights_of(parts.mlp.expert_parameters(model, key.experts()), policy.of_experts());
  return groups;
}

double product_parameters(const ModelSpec& model, std::size_t kind) {
  const BlockKind& parts = kind_of(model, kind);
  return parts.attention.product_parameters(model) + parts.mlp.product_parameters(model);
}

Reason tensor_rule(const ModelSpec& model, std::int32_t tensor, bool splits_experts) {
  const BlockKinds kinds = block_kinds(model);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const BlockKind& kind = kinds[i];
    for (const Reason reason :
         {kind.attention.tensor_rule(model, tensor), kind.mlp.tensor_rule(model, tensor, splits_experts)}) {
      if (reason != Reason::none) return reason;
    }
  }
  return Reason::none;
}

Flops model_flops_per_sequence(const ModelSpec& model, std::int64_t tokens, double of_attention) {
  const auto s = static_cast<double>(tokens), hidden = static_cast<double>(model.hidden);
  const auto block = [&](std::size_t kind) {
    return 2 * s * product_parameters(model, kind) +
           of_attention * kind_of(model, kind).attention.core_flops(model, s);
  };
  double flops = 0;
  for (const BlockRun& run : all_layers(model)) flops += run.count * block(run.kind);
  const double head = 2 * s * hidden * static_cast<double>(model.vocabulary);
  flops += head;
  if (model.moe) {
    const double further = block(kind_of_layer(model, model.layers - 1)) + 2 * s * 2 * hidden * hidden + head;
    flops += static_cast<double>(model.moe->mtp_layers) * further;
  }
  return Flops(3 * flops);
}

}  // namespace shardscape::model
