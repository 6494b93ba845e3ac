#include "engine/model/mlp/dense.h"

namespace shardscape::model {

namespace {

/// Vector FLOPs per element; the kernel is bound by HBM on known devices.
constexpr double kActivationFlops = 12;

Operator activation(const OperatorBuilder& b) {
  Operator op;
  const MlpKind kind = b.model().mlp;
  const bool gated = b.model().gated();
  op.name = name_of(kind);
  const double elements = b.tokens() * b.per_rank(b.model().ffn_hidden);
  const double inputs = gated ? 2 : 1;
  op.forward = {Bytes((inputs + 1) * b.element() * elements), Flops(kActivationFlops * elements), 1};
  op.backward = {Bytes((2 * inputs + 1) * b.element() * elements), Flops(2 * kActivationFlops * elements), 1};
  // The sign of a ReLU's output says what its input was: the tensor that the next operator keeps serves it,
  // too.
  op.saved = op.saved_selective = Bytes((kind == MlpKind::relu ? 0 : inputs) * b.element() * elements);
  if (gated && !b.stack().fused_pointwise) {
    // Nonlinearity and product apart: 2 + 3 tensors forward; 5 for the product's backward, 3 for the other's.
    op.forward.traffic = Bytes(5 * b.element() * elements);
    op.backward.traffic = Bytes(8 * b.element() * elements);
    op.forward.kernels = op.backward.kernels = 2;
    const double kept = kind == MlpKind::reglu ? 2 : 3;
    op.saved = op.saved_selective = Bytes(kept * b.element() * elements);
  }
  if (kind == MlpKind::squared_relu && !b.stack().fused_pointwise) {
    // ReLU and square apart: 2 + 2 tensors forward, 3 + 3 backward.
    op.forward.traffic = Bytes(4 * b.element() * elements);
    op.backward.traffic = Bytes(6 * b.element() * elements);
    op.forward.kernels = op.backward.kernels = 2;
  }
  return op;
}

}  // namespace

void DenseMlp::append_operators(std::vector<Operator>& ops, const OperatorBuilder& b, Bytes input) const {
  const double ffn = b.per_rank(b.model().ffn_hidden);
  ops.push_back(b.gemm("mlp_in", b.hidden(), b.per_rank(b.model().mlp_in_width()), input));
  ops.push_back(activation(b));
  ops.push_back(b.gemm("mlp_out", ffn, b.hidden(), b.product_input(ffn)));
}

double DenseMlp::gradient_width(const ModelSpec& model, std::int32_t tensor) const {
  const double tensors = model.gated() ? 4 : 2;  // inputs and outputs of nonlinearity and product
  return tensors * static_cast<double>(model.ffn_hidden) / tensor;
}

PartParameters DenseMlp::parameters(const ModelSpec& model, std::int32_t tensor) const {
  const auto hidden = static_cast<double>(model.hidden);
  const double bias = model.has_mlp_bias() ? 1 : 0, in = model.gated() ? 2 : 1;
  const double columns = static_cast<double>(model.mlp_in_width()) / tensor;
  const double rows = static_cast<double>(model.ffn_hidden) / tensor;
  return {(columns + rows) * hidden, bias * (columns + hidden), (1 + bias) * (in + 1)};
}

double DenseMlp::product_parameters(const ModelSpec& model) const {
  return static_cast<double>(model.hidden) * static_cast<double>(model.mlp_in_width() + model.ffn_hidden);
}

Reason DenseMlp::tensor_rule(const ModelSpec& model, std::int32_t tensor) const {
  return model.ffn_hidden % tensor != 0 ? Reason::ffn_by_tensor : Reason::none;
}

}  // namespace shardscape::model
