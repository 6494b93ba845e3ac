#include "engine/model/mlp/expert_biases.h"

#include "engine/model/mlp/activation.h"

namespace shardscape::model {

Operator plain_biased_activation(const OperatorBuilder& b, double elements, double experts) {
  const double e = b.element();
  const bool gated = b.model().gated();
  Operator op = activation(b, elements);
  const double forward = gated ? 11 * e : 2 * e, backward = gated ? 21 * e : 4 * e;
  const double weighted = 2 * e + 2 * kFp32Bytes, weights_gradient = 3 * e + 7 * kFp32Bytes;
  op.forward.traffic = Bytes((forward + weighted) * elements);
  op.backward.traffic = Bytes((backward + weights_gradient) * elements);
  op.forward.kernels = gated ? 7 : 3;
  op.backward.kernels = (gated ? 11 : 6) + experts;
  op.plain = true;
  op.saved = Bytes((gated ? 6 : 2) * e * elements);
  if (!op.again) op.saved_selective = op.saved;
  return op;
}

Operator plain_expert_bias(const OperatorBuilder& b, double elements, double experts) {
  constexpr double kFlops = 2;  // a product and a sum
  const double e = b.element();
  Operator op;
  op.name = "expert_bias";
  op.forward = {Bytes((2 * e + 6 * kFp32Bytes) * elements), Flops(kFlops * elements), 2 * experts + 2};
  op.backward = {Bytes((4 * e + 8 * kFp32Bytes) * elements), Flops(2 * kFlops * elements), 4 * experts + 3};
  op.plain = true;
  return op;
}

}  // namespace shardscape::model
