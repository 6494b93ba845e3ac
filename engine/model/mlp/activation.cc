#include "engine/model/mlp/activation.h"

namespace shardscape::model {

namespace {

/// Vector FLOPs per element; the kernel is bound by HBM on known devices.
constexpr double kActivationFlops = 12;

}  // namespace

Operator activation(const OperatorBuilder& b, double elements) {
  Operator op;
  const MlpKind kind = b.model().mlp;
  const bool gated = b.model().gated();
  op.name = name_of(kind);
  const double inputs = gated ? 2 : 1;
  op.forward = {Bytes((inputs + 1) * b.element() * elements), Flops(kActivationFlops * elements), 1};
  op.backward = {Bytes((2 * inputs + 1) * b.element() * elements), Flops(2 * kActivationFlops * elements), 1};
  // The sign of a ReLU's output tells the sign of its input, so that it keeps nothing: the output is kept by the next
  // operator.
  const double kept_inputs = kind == MlpKind::relu ? 0 : inputs;
  const double kept = b.kept_bytes(b.stack().kept.activation_inputs);
  op.again = b.repeats_activations();
  op.saved = op.saved_selective = Bytes(kept_inputs * kept * elements);
  if (gated && !b.stack().fused_pointwise) {
    // Nonlinearity and product as two kernels move 2 + 3 tensors forward; backward moves 5 for the product, 3 for the
    // other.
    op.forward.traffic = Bytes(5 * b.element() * elements);
    op.backward.traffic = Bytes(8 * b.element() * elements);
    op.forward.kernels = op.backward.kernels = 2;
    const double outputs = kind == MlpKind::reglu ? 0 : 1;
    op.saved += Bytes(outputs * b.element() * elements);
    if (!op.again) op.saved_selective = op.saved;
  }
  if (kind == MlpKind::squared_relu && !b.stack().fused_pointwise) {
    // ReLU and square as two kernels move 2 + 2 tensors forward and 3 + 3 backward.
    op.forward.traffic = Bytes(4 * b.element() * elements);
    op.backward.traffic = Bytes(6 * b.element() * elements);
    op.forward.kernels = op.backward.kernels = 2;
  }
  // A narrower copy is written beside the inputs, and read in their place in backward.
  if (kept < b.element()) {
    op.forward.traffic += Bytes(kept_inputs * kept * elements);
    op.backward.traffic -= Bytes(kept_inputs * (b.element() - kept) * elements);
  }
  return op;
}

}  // namespace shardscape::model
