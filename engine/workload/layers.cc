#include "engine/workload/layers.h"

#include <algorithm>

namespace shardscape::workload {

namespace {

using network::CollectiveOp;

/// Vector FLOPs per element: enough to tell compute from bandwidth; every one of these is bound by HBM on
/// known devices.
constexpr double kNormFlops = 8;
constexpr double kActivationFlops = 12;
constexpr double kResidualFlops = 3;
constexpr double kRotaryFlops = 6;
constexpr double kLossFlops = 10;

constexpr double kMaskBytes = 1;  ///< dropout masks, one byte per element
constexpr double kFp32Bytes = 4;

/// Sizes on one rank, and builders for the operators that both attention and MLP need.
class Builder {
 public:
  Builder(const Setting& setting, const LayerKey& key, double tokens_per_sequence, Mode mode)
      : model_(setting.model),
        stack_(setting.system.stack),
        key_(key),
        element_(bytes_per_element(setting.workload.precision)),
        tokens_(tokens_per_sequence * key.microbatch / key.context),
        norm_tokens_(key.sequence_parallel ? tokens_ / key.tensor : tokens_),
        training_(mode == Mode::training) {}

  [[nodiscard]] double tokens() const { return tokens_; }
  [[nodiscard]] double element() const { return element_; }
  [[nodiscard]] double hidden() const { return static_cast<double>(model_.hidden); }
  [[nodiscard]] double per_rank(std::int64_t width) const { return static_cast<double>(width) / key_.tensor; }
  [[nodiscard]] bool dropout() const { return training_ && model_.dropout > 0; }
  [[nodiscard]] bool attention_dropout() const {
    return training_ && model_.attention_dropout.value_or(model_.dropout) > 0;
  }
  [[nodiscard]] bool embedding_dropout() const {
    return training_ && model_.embedding_dropout.value_or(model_.dropout) > 0;
  }
  [[nodiscard]] double qkv_width() const {
    return static_cast<double>((model_.heads / key_.tensor + 2 * local_kv_heads(model_, key_.tensor)) *
                               model_.head_dim);
  }

  /// A tensor of tokens x width elements on this rank.
  [[nodiscard]] Bytes tensor(double width) const { return Bytes(element_ * tokens_ * width); }
  [[nodiscard]] Bytes norm_tensor() const { return Bytes(element_ * norm_tokens_ * hidden()); }

  [[nodiscard]] Operator gemm(std::string_view name, double k, double n, Bytes saved) const {
    Operator op;
    op.name = name;
    op.kind = OperatorKind::gemm;
    op.gemm = {static_cast<std::int64_t>(std::max(1.0, tokens_)), static_cast<std::int64_t>(n),
               static_cast<std::int64_t>(k), 1};
    op.saved = op.saved_selective = saved;
    return op;
  }

  /// `keeps_input`: false where another operator keeps the same tensor for backward.
  [[nodiscard]] Operator norm(std::string_view name, bool keeps_input = true) const {
    Operator op;
    op.name = name;
    const double elements = norm_tokens_ * hidden();
    op.forward = {Bytes(2 * element_ * elements), Flops(kNormFlops * elements), 1};
    op.backward = {Bytes(3 * element_ * elements), Flops(2 * kNormFlops * elements), 1};
    op.saved = op.saved_selective = keeps_input ? norm_tensor() : Bytes(0);
    if (!stack_.fused_pointwise) {
      // Cast, norm in fp32, cast; backward casts the gradient, reads the fp32 copy and the gradient, casts.
      op.forward.traffic = Bytes(2 * (element_ + 2 * kFp32Bytes) * elements);
      op.backward.traffic = Bytes((2 * element_ + 5 * kFp32Bytes) * elements);
      op.forward.kernels = op.backward.kernels = 3;
      op.saved = op.saved_selective = op.saved + Bytes(kFp32Bytes * elements);
    }
    return op;
  }

  /// Bias, dropout and residual addition in one kernel.
  [[nodiscard]] Operator residual(std::string_view name, bool dropout) const {
    Operator op;
    op.name = name;
    const double elements = norm_tokens_ * hidden();
    const double mask = dropout ? kMaskBytes : 0;
    op.forward = {Bytes((3 * element_ + mask) * elements), Flops(kResidualFlops * elements), 1};
    op.backward = {Bytes((dropout ? 2 * element_ + mask : 2 * element_) * elements),
                   Flops(kResidualFlops * elements), 1};
    op.saved = op.saved_selective = Bytes(mask * elements);
    return op;
  }

  /// The outputs of attention and MLP of a parallel block, each with its dropout, added together: on every
  /// rank of a tensor group the partial sums, before one reduction of both. Backward: both dropouts, or the
  /// two gradients of the input they share.
  [[nodiscard]] Operator branch_sum(std::string_view name) const {
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

  /// Before a column-parallel product: all-gather of the tokens (sequence parallel), or nothing now and an
  /// all-reduce of the input's gradient. Sequence parallelism gathers the input once more in backward for the
  /// weights' gradient, unless the stack keeps it.
  [[nodiscard]] Operator enter_tensor_region(std::string_view name) const {
    Operator op = collective(name);
    if (key_.sequence_parallel) {
      op.forward_comm = call(CollectiveOp::all_gather, 1);
      op.backward_comm = call(CollectiveOp::reduce_scatter, stack_.keep_gathered ? 1 : 2);
    } else {
      op.backward_comm = call(CollectiveOp::all_reduce, 1);
    }
    return op;
  }

  /// After a row-parallel product: reduce-scatter of the partial sums (sequence parallel), or all-reduce.
  [[nodiscard]] Operator leave_tensor_region(std::string_view name) const {
    Operator op = collective(name);
    if (key_.sequence_parallel) {
      op.forward_comm = call(CollectiveOp::reduce_scatter, 1);
      op.backward_comm = call(CollectiveOp::all_gather, 1);
    } else {
      op.forward_comm = call(CollectiveOp::all_reduce, 1);
    }
    return op;
  }

  /// What a column-parallel product keeps of its input: the rank's own tokens, or all of them.
  [[nodiscard]] Bytes gathered_input() const {
    return key_.sequence_parallel && !stack_.keep_gathered ? norm_tensor() : tensor(hidden());
  }

 private:
  [[nodiscard]] static Operator collective(std::string_view name) {
    Operator op;
    op.name = name;
    op.kind = OperatorKind::collective;
    return op;
  }
  [[nodiscard]] CollectiveCall call(CollectiveOp op, double repeats) const {
    return {op, PlanAxis::tensor, tensor(hidden()), key_.tensor > 1 ? repeats : 0};
  }

  const ModelSpec& model_;
  const StackProfile& stack_;
  const LayerKey key_;
  double element_;
  double tokens_;       ///< on this rank inside the tensor-parallel region
  double norm_tokens_;  ///< on this rank outside it
  bool training_;
};

compute::AttentionShape attention_shape(const Setting& setting, const LayerKey& key, double tokens,
                                        bool dropout) {
  compute::AttentionShape shape;
  shape.batch = key.microbatch;
  shape.heads = static_cast<double>(setting.model.heads) / key.tensor;
  shape.kv_heads = static_cast<double>(local_kv_heads(setting.model, key.tensor));
  shape.head_dim = static_cast<double>(setting.model.head_dim);
  shape.queries = tokens / key.context;
  shape.keys = tokens;
  shape.visible = 0.5;
  shape.dropout = dropout;
  return shape;
}

/// What the core keeps beside Q, K and V: for flash the log-sum-exp of each row of scores; naive keeps
/// softmax output, dropout mask and dropout output of each score (5 a s^2 b).
Bytes core_bytes(const Setting& setting, double rows, double scores, const Builder& b) {
  if (setting.system.stack.attention == AttentionKernel::flash) return Bytes(kFp32Bytes * rows);
  return Bytes((b.attention_dropout() ? 2 * b.element() + kMaskBytes : b.element()) * scores);
}

/// The attention core. Saved: Q, K, V and core_bytes().
Operator attention_core(const Setting& setting, const LayerKey& key, double tokens, const Builder& b) {
  Operator op;
  op.name = "attention";
  op.kind = OperatorKind::attention;
  op.attention = attention_shape(setting, key, tokens, b.attention_dropout());
  op.attention_core = true;
  op.saved_selective = b.tensor(b.qkv_width());
  const compute::AttentionShape& shape = op.attention;
  const double rows = shape.batch * shape.heads * shape.queries;
  op.saved = op.saved_selective + core_bytes(setting, rows, shape.scores(), b);
  return op;
}

/// Keys and values go round the context group, one piece per step; backward passes them again together with
/// their gradients.
Operator context_ring(const LayerKey& key, const Setting& setting, const Builder& b) {
  Operator op;
  op.name = "context_ring";
  op.kind = OperatorKind::collective;
  const double kv_width =
      2 * static_cast<double>(local_kv_heads(setting.model, key.tensor) * setting.model.head_dim);
  const double steps = key.context - 1;
  op.forward_comm = {CollectiveOp::ring_pass, PlanAxis::context, b.tensor(kv_width), steps};
  op.backward_comm = {CollectiveOp::ring_pass, PlanAxis::context, 2 * b.tensor(kv_width), steps};
  return op;
}

Operator rotary(const Setting& setting, const LayerKey& key, const Builder& b) {
  Operator op;
  op.name = "rotary";
  const ModelSpec& model = setting.model;
  const double elements =
      b.tokens() * model.rotary_fraction *
      static_cast<double>((model.heads / key.tensor + local_kv_heads(model, key.tensor)) * model.head_dim);
  op.forward = op.backward = {Bytes(2 * b.element() * elements), Flops(kRotaryFlops * elements), 1};
  return op;
}

Operator activation(const Setting& setting, const Builder& b) {
  Operator op;
  const bool gated = setting.model.gated();
  op.name = name_of(setting.model.mlp);
  const double elements = b.tokens() * b.per_rank(setting.model.ffn_hidden);
  const double inputs = gated ? 2 : 1;
  op.forward = {Bytes((inputs + 1) * b.element() * elements), Flops(kActivationFlops * elements), 1};
  op.backward = {Bytes((2 * inputs + 1) * b.element() * elements), Flops(2 * kActivationFlops * elements), 1};
  // The sign of a ReLU's output says what its input was: the tensor that the next operator keeps serves it,
  // too.
  const bool relu = setting.model.mlp == MlpKind::relu;
  op.saved = op.saved_selective = Bytes((relu ? 0 : inputs) * b.element() * elements);
  if (gated && !setting.system.stack.fused_pointwise) {
    // Nonlinearity and product apart: 2 + 3 tensors forward; 5 for the product's backward, 3 for the other's.
    op.forward.traffic = Bytes(5 * b.element() * elements);
    op.backward.traffic = Bytes(8 * b.element() * elements);
    op.forward.kernels = op.backward.kernels = 2;
    const double kept = setting.model.mlp == MlpKind::reglu ? 2 : 3;
    op.saved = op.saved_selective = Bytes(kept * b.element() * elements);
  }
  return op;
}

/// From the QKV projection to the output projection.
void append_attention(std::vector<Operator>& ops, const Setting& setting, const LayerKey& key, double tokens,
                      const Builder& b) {
  const ModelSpec& model = setting.model;
  ops.push_back(b.gemm("qkv_projection", b.hidden(), b.qkv_width(), b.gathered_input()));
  if (model.position == PositionKind::rotary) ops.push_back(rotary(setting, key, b));
  if (key.context > 1) ops.push_back(context_ring(key, setting, b));
  ops.push_back(attention_core(setting, key, tokens, b));
  Operator projection = b.gemm("output_projection", b.per_rank(model.attention_width()), b.hidden(),
                               b.tensor(b.per_rank(model.attention_width())));
  // Flash recomputes its output, which is the projection's input; naive attention keeps it.
  if (setting.system.stack.attention == AttentionKernel::flash) projection.saved_selective = Bytes(0);
  // Where both branches of a parallel block are just added, the gradient of the sum is that of each.
  projection.shares_output_gradient = model.parallel_residual && !b.dropout();
  ops.push_back(projection);
}

/// `input`: what the first projection keeps of its input.
void append_mlp(std::vector<Operator>& ops, const Setting& setting, const Builder& b, Bytes input) {
  const double ffn = b.per_rank(setting.model.ffn_hidden);
  ops.push_back(b.gemm("mlp_in", b.hidden(), b.per_rank(setting.model.mlp_in_width()), input));
  ops.push_back(activation(setting, b));
  ops.push_back(b.gemm("mlp_out", ffn, b.hidden(), b.tensor(ffn)));
}

/// x + attention(norm(x)), and then y + mlp(norm(y)) of that.
void append_sequential_block(std::vector<Operator>& ops, const Setting& setting, const LayerKey& key,
                             double tokens, const Builder& b) {
  ops.push_back(b.norm("input_norm"));
  ops.push_back(b.enter_tensor_region("attention_gather"));
  append_attention(ops, setting, key, tokens, b);
  ops.push_back(b.leave_tensor_region("attention_reduce"));
  ops.push_back(b.residual("attention_residual", b.dropout()));
  ops.push_back(b.norm("mlp_norm"));
  ops.push_back(b.enter_tensor_region("mlp_gather"));
  append_mlp(ops, setting, b, b.gathered_input());
  ops.push_back(b.leave_tensor_region("mlp_reduce"));
  ops.push_back(b.residual("mlp_residual", b.dropout()));
}

/// x + attention(norm(x)) + mlp(norm(x)): the sum of both is reduced over the tensor group once, as GPT-NeoX
/// does. Of a shared norm there is one output, which is gathered and kept once and whose gradient is reduced
/// once; two norms have two outputs, but one input that both need in backward.
void append_parallel_block(std::vector<Operator>& ops, const Setting& setting, const LayerKey& key,
                           double tokens, const Builder& b) {
  const bool shared = setting.model.shared_norm;
  ops.push_back(b.norm("input_norm"));
  ops.push_back(b.enter_tensor_region("attention_gather"));
  append_attention(ops, setting, key, tokens, b);
  if (!shared) {
    ops.push_back(b.norm("mlp_norm", false));
    ops.push_back(b.enter_tensor_region("mlp_gather"));
  }
  append_mlp(ops, setting, b, shared ? Bytes(0) : b.gathered_input());
  ops.push_back(b.branch_sum("branch_sum"));
  ops.push_back(b.leave_tensor_region("block_reduce"));
  ops.push_back(b.residual("block_residual", false));
}

void append_block(std::vector<Operator>& ops, const Setting& setting, const LayerKey& key, double tokens,
                  const Builder& b) {
  if (setting.model.parallel_residual) {
    append_parallel_block(ops, setting, key, tokens, b);
  } else {
    append_sequential_block(ops, setting, key, tokens, b);
  }
}

/// Padded so that it splits over the tensor group in whole columns.
double local_vocabulary(const ModelSpec& model, std::int32_t tensor) {
  return static_cast<double>((model.vocabulary + tensor - 1) / tensor);
}

/// Logits of one microbatch on one rank.
double local_logits(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  return static_cast<double>(tokens) * key.microbatch / key.context *
         local_vocabulary(setting.model, key.tensor);
}

}  // namespace

std::int64_t local_kv_heads(const ModelSpec& model, std::int32_t tensor) {
  return std::max<std::int64_t>(1, model.kv_heads / tensor);
}

std::vector<Operator> block_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                      Mode mode) {
  const Builder b(setting, key, static_cast<double>(tokens), mode);
  std::vector<Operator> ops;
  ops.reserve(18);
  append_block(ops, setting, key, static_cast<double>(tokens), b);
  return ops;
}

std::vector<Operator> embedding_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                          Mode mode) {
  const Builder b(setting, key, static_cast<double>(tokens), mode);
  std::vector<Operator> ops;
  Operator lookup;
  lookup.name = "embedding";
  lookup.forward = {2 * b.tensor(b.hidden()), Flops(0), 1};
  lookup.backward = {Bytes(b.tokens() * b.hidden() * (b.element() + 2 * kFp32Bytes)), Flops(0), 1};
  ops.push_back(lookup);
  ops.push_back(b.leave_tensor_region("embedding_reduce"));  // the vocabulary is split over the tensor group
  if (b.embedding_dropout()) ops.push_back(b.residual("embedding_dropout", true));
  return ops;
}

std::vector<Operator> head_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                     Mode mode) {
  LayerKey head_key = key;
  if (mode == Mode::prefill) {  // one token per sequence, on the last context rank
    head_key.context = 1;
    head_key.sequence_parallel = false;
  }
  const Builder b(setting, head_key, mode == Mode::prefill ? 1.0 : static_cast<double>(tokens), mode);
  const double columns = local_vocabulary(setting.model, key.tensor);
  std::vector<Operator> ops;
  ops.push_back(b.norm("final_norm"));
  ops.push_back(b.enter_tensor_region("head_gather"));
  ops.push_back(b.gemm("lm_head", b.hidden(), columns, b.gathered_input()));
  if (mode == Mode::training) {
    Operator loss;
    loss.name = "cross_entropy";
    const double elements = b.tokens() * columns;
    // Unfused: logits are cast to fp32, reduced twice (maximum, sum of exponentials) and written as
    // probabilities; backward turns them into gradients.
    const bool fused = setting.system.stack.fused_loss;
    const double forward = fused ? b.element() : b.element() + 4 * kFp32Bytes;
    const double backward = fused ? 2 * b.element() : kFp32Bytes + 2 * b.element();
    loss.forward = {Bytes(forward * elements), Flops(kLossFlops * elements), fused ? 1.0 : 4.0};
    loss.backward = {Bytes(backward * elements), Flops(kLossFlops * elements), fused ? 1.0 : 2.0};
    ops.push_back(loss);
  }
  return ops;
}

std::vector<Operator> decode_block_operators(const Setting& setting, const LayerKey& key, double cached) {
  LayerKey step = key;  // each rank of a context group would hold a part of the cache; decode splits the
                        // keys, not the query
  step.context = 1;
  step.sequence_parallel = false;
  const Builder b(setting, step, 1, Mode::prefill);
  std::vector<Operator> ops;
  append_block(ops, setting, step, 1, b);
  for (Operator& op : ops) {
    if (op.kind != OperatorKind::attention) continue;
    op.name = "decode_attention";
    op.attention.queries = 1;
    op.attention.keys = cached / key.context;
    op.attention.visible = 1;
    const double rows = op.attention.batch * op.attention.heads;
    op.saved = op.saved_selective + core_bytes(setting, rows, op.attention.scores(), b);
  }
  return ops;
}

std::vector<Operator> decode_embedding_operators(const Setting& setting, const LayerKey& key) {
  LayerKey step = key;
  step.context = 1;
  step.sequence_parallel = false;
  return embedding_operators(setting, step, 1, Mode::prefill);
}

std::vector<Operator> decode_head_operators(const Setting& setting, const LayerKey& key) {
  return head_operators(setting, key, 1, Mode::prefill);
}

Bytes boundary_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  const double per_rank = static_cast<double>(tokens) * key.microbatch / key.context;
  const double share = key.sequence_parallel ? 1.0 / key.tensor : 1.0;
  return Bytes(bytes_per_element(setting.workload.precision) * per_rank * share *
               static_cast<double>(setting.model.hidden));
}

Bytes saved_bytes(const std::vector<Operator>& operators, Recompute recompute, const Setting& setting,
                  const LayerKey& key, std::int64_t tokens) {
  if (recompute == Recompute::full) return boundary_bytes(setting, key, tokens);
  Bytes sum;
  for (const Operator& op : operators)
    sum += recompute == Recompute::selective ? op.saved_selective : op.saved;
  return sum;
}

Bytes serving_block_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens, double pairs) {
  const Builder b(setting, key, static_cast<double>(tokens), Mode::prefill);
  Bytes sum;
  for (const Operator& op : block_operators(setting, key, tokens, Mode::prefill)) {
    const double rows = op.attention.heads * op.attention.queries;
    sum += op.attention_core
               ? op.saved_selective + core_bytes(setting, rows, op.attention.heads * pairs / key.context, b)
               : op.saved;
  }
  return sum;
}

Bytes put_off_bytes(const std::vector<Operator>& operators, const Setting& setting) {
  const double element = bytes_per_element(setting.workload.precision);
  Bytes sum;
  for (const Operator& op : operators) {
    if (op.kind != OperatorKind::gemm) continue;
    const double output = static_cast<double>(op.gemm.m) * static_cast<double>(op.gemm.n);
    sum += op.saved + Bytes(op.shares_output_gradient ? 0 : element * output);
  }
  return sum;
}

Bytes backward_working_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  const ModelSpec& model = setting.model;
  const double hidden = 4 * static_cast<double>(model.hidden);
  const double gradients = model.gated() ? 4 : 2;
  const double inner = gradients * static_cast<double>(model.ffn_hidden) / key.tensor;
  return Bytes(bytes_per_element(setting.workload.precision) * static_cast<double>(tokens) * key.microbatch /
               key.context * (hidden + inner));
}

Bytes logits_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  const double element = bytes_per_element(setting.workload.precision);
  // Logits and their gradient; unfused losses keep an fp32 copy as well.
  const double per_logit = 2 * element + (setting.system.stack.fused_loss ? 0 : kFp32Bytes);
  return Bytes(per_logit * local_logits(setting, key, tokens));
}

Bytes saved_logits_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  const bool fused = setting.system.stack.fused_loss;
  const double per_logit = fused ? bytes_per_element(setting.workload.precision) : kFp32Bytes;
  return Bytes(per_logit * local_logits(setting, key, tokens));
}

Flops model_flops_per_sequence(const ModelSpec& model, std::int64_t tokens) {
  const auto s = static_cast<double>(tokens);
  const double block =
      2 * s * model.block_matrix_parameters() + 4 * s * s * static_cast<double>(model.attention_width());
  const double head = 2 * s * static_cast<double>(model.hidden) * static_cast<double>(model.vocabulary);
  return Flops(3 * (static_cast<double>(model.layers) * block + head));
}

}  // namespace shardscape::workload
