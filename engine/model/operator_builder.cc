// Operators that several parts of a model share, with their FLOPs, traffic, messages and kept bytes on one rank:
// products, attention cores, norms, residuals and the collectives around the tensor-parallel region.
#include "engine/model/operator_builder.h"

#include <algorithm>

#include "engine/spec/causal_window.h"

namespace shardscape::model {

namespace {

using network::CollectiveOp;

/// Vector FLOPs per element, rough, as each of these kernels is bound by HBM on known devices.
constexpr double kNormFlops = 8;
constexpr double kResidualFlops = 3;
constexpr double kRotaryFlops = 6;
/// Vector FLOPs per score. ALiBi: slope times distance, added (Press et al. 2022). Soft cap: division, tanh (twice an
/// exponential's 4), and product.
constexpr double kAlibiFlops = 2;
constexpr double kSoftCapFlops = 10;

/// Rows of a product over `tokens` tokens, at least 1.
std::int64_t rows(double tokens) { return static_cast<std::int64_t>(std::max(1.0, tokens)); }

Operator collective(std::string_view name) {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::collective;
  return op;
}

}  // namespace

OperatorBuilder::OperatorBuilder(const Setting& setting, const LayerKey& key, double tokens, double keys,
                                 Mode mode)
    : model_(setting.model),
      stack_(setting.system.stack),
      device_(setting.system.device),
      workload_(setting.workload),
      key_(key),
      policy_(setting.policy()),
      mode_(mode),
      fused_attention_(is_fused(stack_.attention) &&
                       !(mode == Mode::training && model_.attention_sinks &&
                         setting.system.device.architecture < stack_.fused_sinks_from)),
      element_(bytes_per_element(policy_.activations)),
      keys_(keys),
      queries_(tokens / key.context),
      tokens_(tokens * key.microbatch / key.context),
      norm_tokens_(key.sequence_parallel ? tokens_ / key.tensor : tokens_) {}

Bytes OperatorBuilder::message(double width) const {
  return Bytes(bytes_per_element(policy_.wire) * tokens_ * width);
}

Bytes OperatorBuilder::attention_tensor(double width) const {
  return Bytes(bytes_per_element(policy_.attention) * tokens_ * width);
}

Bytes OperatorBuilder::product_input(double width) const {
  return Bytes(policy_.operand_bytes(policy_.products) * tokens_ * width);
}

Bytes OperatorBuilder::gathered_input(Precision operands, double width) const {
  const bool own = key_.sequence_parallel && !stack_.keep_gathered;
  return Bytes(policy_.operand_bytes(operands) * (own ? norm_tokens_ : tokens_) * width);
}

Operator OperatorBuilder::product(std::string_view name, const compute::GemmShape& shape, Precision operands,
                                  Bytes input) const {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::gemm;
  op.gemm = shape;
  op.operands = operands;
  op.input = op.saved = op.saved_selective = input;
  return op;
}

Operator OperatorBuilder::gemm(std::string_view name, double k, double n, Bytes input) const {
  return dense_product(name, tokens_, k, n, policy_.products, input);
}

Operator OperatorBuilder::own_gemm(std::string_view name, double k, double n, Bytes input) const {
  return dense_product(name, norm_tokens_, k, n, policy_.products, input);
}

Operator OperatorBuilder::shared_gemm(std::string_view name, double k, double n, Bytes input) const {
  return dense_product(name, tokens_, k, n, policy_.expert_products, input);
}

Operator OperatorBuilder::dense_product(std::string_view name, double tokens, double k, double n,
                                        Precision operands, Bytes input) const {
  Operator op = product(name, {rows(tokens), static_cast<std::int64_t>(n), static_cast<std::int64_t>(k), 1},
                        operands, input);
  const bool leaves_units = device_.architecture == Architecture::hopper;
  if (mode_ != Mode::training && operands == Precision::fp8 && model_.fp8_block_scales && leaves_units)
    op.rate_share = stack_.serving.fp8_block_share;
  return op;
}

Operator OperatorBuilder::remade(Operator product, bool again) {
  product.input_again = again;
  if (again) product.saved_selective = Bytes(0);
  return product;
}

void OperatorBuilder::append_output_projection(std::vector<Operator>& ops, double width) const {
  Operator projection = gemm("output_projection", width, hidden(), product_input(width));
  // The backward of flash needs the core's output, which selective recompute makes again. It is kept as the input of
  // the projection; where the projection casts, as a tensor beside the copy, or as one tensor for both in a format of
  // its own. Naive attention does not need it.
  if (fused_attention_) {
    const bool casts = policy_.products != policy_.attention;
    const double kept = kept_bytes(stack_.kept.attention_output);
    if (kept < element_) {
      const double elements = tokens_ * width;
      Operator cast;
      cast.name = "attention_output_cast";
      cast.forward = cast.backward = {Bytes((element_ + kept) * elements), Flops(0), 1};
      ops.push_back(cast);
      projection.saved = Bytes(kept * elements);
    } else if (casts) {
      projection.saved += attention_tensor(width);
    }
    const Bytes copy = casts ? product_input(width) : Bytes(0);
    projection.saved_selective = repeats(RecomputePart::attention_core) ? copy : projection.saved;
  }
  // Where the branches of a parallel block are just added, the gradient of the sum is the gradient of each.
  projection.shares_output_gradient = model_.parallel_residual && !dropout();
  ops.push_back(projection);
}

Operator OperatorBuilder::attention_core(double heads, double kv_heads, double head_dim, Bytes inputs,
                                         double window) const {
  const bool decodes = mode_ == Mode::decode;
  Operator op;
  op.name = decodes ? "decode_attention" : "attention";
  op.kind = OperatorKind::attention;
  op.attention_core = true;
  op.naive_core = is_fused(stack_.attention) && !fused_attention_;
  compute::AttentionShape& shape = op.attention;
  shape.batch = key_.microbatch;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = head_dim;
  shape.queries = queries_;
  shape.keys = decodes && window > 0 ? std::min(keys_, window) : keys_;
  shape.visible = decodes ? 1 : visible_share(keys_, window);
  if (fused_attention_ && rings(window)) shape.pieces = key_.context;
  shape.dropout = attention_dropout();
  shape.score_flops = (model_.position == PositionKind::alibi ? kAlibiFlops : 0) +
                      (model_.attention_soft_cap ? kSoftCapFlops : 0);
  op.again = repeats(RecomputePart::attention_core);
  op.saved = inputs + core_bytes(shape.batch * shape.heads * shape.queries, shape.scores());
  op.saved_selective = op.again || mode_ == Mode::prefill ? inputs : op.saved;
  return op;
}

Bytes OperatorBuilder::core_bytes(double rows, double scores) const {
  if (fused_attention_) return Bytes(kFp32Bytes * rows);
  const double element = bytes_per_element(policy_.attention);
  return Bytes((attention_dropout() ? 2 * element + kMaskBytes : element) * scores);
}

Operator OperatorBuilder::context_ring(Bytes kv) const {
  Operator op = collective("context_ring");
  const double steps = key_.context - 1;
  op.forward_comm = {CollectiveOp::ring_pass, ParallelGroup::context, kv, steps};
  op.backward_comm = {CollectiveOp::ring_pass, ParallelGroup::context, 2 * kv, steps};
  return op;
}

bool OperatorBuilder::rings(double window) const {
  return mode_ == Mode::training && key_.context > 1 && window == 0 &&
         stack_.communication.context_exchange == ContextExchange::ring;
}

void OperatorBuilder::merge_ring(Operator& core, const CoreWidths& widths, double window) const {
  const auto [queries, output, kv] = widths;
  if (!rings(window)) {
    // Keys and values of all ranks, and their gradients before these are given back; of windows a few.
    if (mode_ == Mode::training && key_.context > 1 && window == 0)
      core.working = attention_tensor(queries + 2.0 * key_.context * kv);
    return;
  }
  const double steps = key_.context, sums = steps - 1;
  const double forward = (2 + 3 * sums) * output;
  const double backward = 2 * (queries + kv) + 3 * sums * (queries + kv - std::min(queries, kv) / 2);
  constexpr double kFlops = 2;  // for each element: scaled, added
  core.forward = {attention_tensor(forward), Flops(kFlops * steps * tokens_ * output), 2 * steps - 1};
  core.backward = {attention_tensor(backward), Flops(sums * tokens_ * (queries + kv)), 2 * steps};
  core.working = attention_tensor(std::max(steps * output, queries + 5 * kv));
}

Operator OperatorBuilder::rotary(double columns) const {
  Operator op;
  op.name = "rotary";
  const double elements = tokens_ * model_.rotary_fraction * columns;
  op.forward = op.backward = {Bytes(2 * element_ * elements), Flops(kRotaryFlops * elements), 1};
  return op;
}

Operator OperatorBuilder::norm(std::string_view name) const {
  return norm_of(name, norm_tokens_ * hidden(), {});
}

Operator OperatorBuilder::input_norm(std::string_view name) const {
  return norm_of(name, norm_tokens_ * hidden(), {.again = repeats_norms()});
}

Operator OperatorBuilder::norm_of_kept_input(std::string_view name) const {
  return norm_of(name, norm_tokens_ * hidden(), {.keeps_input = false, .again = repeats_norms()});
}

Operator OperatorBuilder::qk_norm(double columns) const {
  Operator op = norm_of("qk_norm", tokens_ * columns, {});
  op.forward.kernels *= 2;
  op.backward.kernels *= 2;
  return op;
}

Operator OperatorBuilder::latent_norm(std::string_view name, double width) const {
  return norm_of(name, norm_tokens_ * width, {.again = repeats_norms()});
}

Operator OperatorBuilder::norm_of(std::string_view name, double elements, NormUse use) const {
  Operator op;
  op.name = name;
  op.again = use.again;
  op.forward = {Bytes(2 * element_ * elements), Flops(kNormFlops * elements), 1};
  op.backward = {Bytes(3 * element_ * elements), Flops(2 * kNormFlops * elements), 1};
  op.saved = op.saved_selective = use.keeps_input ? Bytes(element_ * elements) : Bytes(0);
  if (!stack_.fused_pointwise) {
    // Forward: cast, norm in fp32, cast. Backward: cast the gradient, read the fp32 copy and the gradient, cast.
    op.forward.traffic = Bytes(2 * (element_ + 2 * kFp32Bytes) * elements);
    op.backward.traffic = Bytes((2 * element_ + 5 * kFp32Bytes) * elements);
    op.forward.kernels = op.backward.kernels = 3;
    op.saved += Bytes(kFp32Bytes * elements);
    if (!use.again) op.saved_selective = op.saved;  // otherwise the fp32 copy is made again
  }
  return op;
}

Operator OperatorBuilder::residual(std::string_view name, bool dropout) const {
  Operator op;
  op.name = name;
  const double elements = norm_tokens_ * hidden();
  const double mask = dropout ? kMaskBytes : 0;
  op.forward = {Bytes((3 * element_ + mask) * elements), Flops(kResidualFlops * elements), 1};
  op.backward = {Bytes((dropout ? 2 * element_ + mask : 2 * element_) * elements),
                 Flops(kResidualFlops * elements), 1};
  op.saved = op.saved_selective = Bytes(mask * elements);
  // The traffic that the norm's kernel adds beside its own input and output.
  if (stack_.fused_residual && !dropout) {
    op.forward.traffic = Bytes((2 * element_ + mask) * elements);
    op.forward.kernels = 0;
  }
  return op;
}

Operator OperatorBuilder::branch_sum(std::string_view name) const {
  Operator op;
  op.name = name;
  const double elements = tokens_ * hidden();
  const double masks = dropout() ? 2 * kMaskBytes : 0;
  op.forward = {Bytes((3 * element_ + masks) * elements), Flops(2 * kResidualFlops * elements), 1};
  op.backward = {Bytes((dropout() ? 3 * element_ + masks : 2 * element_) * elements),
                 Flops(2 * kResidualFlops * elements), 1};
  op.saved = op.saved_selective = Bytes(masks * elements);
  return op;
}

Operator OperatorBuilder::enter_tensor_region(std::string_view name, double width) const {
  Operator op = collective(name);
  if (key_.sequence_parallel) {
    op.again = stack_.keep_gathered && repeats_norms();
    op.forward_comm = call(CollectiveOp::all_gather, width, 1);
    op.backward_comm = call(CollectiveOp::reduce_scatter, width, stack_.keep_gathered ? 1 : 2);
  } else {
    op.backward_comm = call(CollectiveOp::all_reduce, width, 1);
  }
  return op;
}

Operator OperatorBuilder::leave_tensor_region(std::string_view name) const {
  Operator op = collective(name);
  if (key_.sequence_parallel) {
    op.forward_comm = call(CollectiveOp::reduce_scatter, hidden(), 1);
    op.backward_comm = call(CollectiveOp::all_gather, hidden(), 1);
  } else {
    op.forward_comm = call(CollectiveOp::all_reduce, hidden(), 1);
  }
  return op;
}

CollectiveCall OperatorBuilder::call(CollectiveOp op, double width, double repeats) const {
  return {op, ParallelGroup::tensor, message(width), key_.tensor > 1 ? repeats : 0};
}

}  // namespace shardscape::model
