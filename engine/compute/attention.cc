#include "engine/compute/attention.h"

#include <algorithm>
#include <cmath>

namespace shardscape::compute {

namespace {

/// Vector operations per score: scale, max, subtract, exp, sum, convert (the exponential counts as 4, the
/// rate of the special-function units).
constexpr double kSoftmaxFlops = 10;
constexpr double kFlashForwardFlopsPerDim = 4;
constexpr double kFlashBackwardFlopsPerDim = 10;

OperatorCost flash(const AttentionShape& shape, double flops_per_dim, double tensor_passes,
                   Precision precision, const DeviceSpec& device) {
  const double scores = shape.scores() * shape.visible;
  const Seconds products = Flops(flops_per_dim * shape.head_dim * scores) /
                           (device.sustained.tensor * device.tensor_peak(precision));
  const Seconds softmax = Flops(kSoftmaxFlops * scores) / device.vector_peak();
  // Q, K, V and O (and their gradients in backward) cross HBM once each.
  const double bytes = bytes_per_element(precision) * shape.batch * shape.head_dim *
                       (2 * shape.heads * shape.queries + 2 * shape.kv_heads * shape.keys) * tensor_passes;
  const Seconds stream = Bytes(bytes) / device.hbm_sustained();
  const Seconds body = std::max(products + softmax, stream);
  return {device.kernel_latency + body, stream > products + softmax ? Bound::hbm : Bound::compute};
}

GemmShape score_product(const AttentionShape& shape) {
  return {static_cast<std::int64_t>(shape.queries), static_cast<std::int64_t>(shape.keys),
          static_cast<std::int64_t>(shape.head_dim), static_cast<std::int64_t>(shape.batch * shape.heads)};
}

GemmShape value_product(const AttentionShape& shape) {
  return {static_cast<std::int64_t>(shape.queries), static_cast<std::int64_t>(shape.head_dim),
          static_cast<std::int64_t>(shape.keys), static_cast<std::int64_t>(shape.batch * shape.heads)};
}

/// dK = dS^T Q (and dV = P^T dO): the reduction runs over the queries.
GemmShape key_gradient_product(const AttentionShape& shape) {
  return {static_cast<std::int64_t>(shape.keys), static_cast<std::int64_t>(shape.head_dim),
          static_cast<std::int64_t>(shape.queries), static_cast<std::int64_t>(shape.batch * shape.heads)};
}

}  // namespace

OperatorCost flash_forward(const AttentionShape& shape, Precision precision, const DeviceSpec& device) {
  return flash(shape, kFlashForwardFlopsPerDim, 1, precision, device);
}

OperatorCost flash_backward(const AttentionShape& shape, Precision precision, const DeviceSpec& device) {
  return flash(shape, kFlashBackwardFlopsPerDim, 2, precision, device);
}

OperatorCost naive_forward(const AttentionShape& shape, Precision precision, const DeviceSpec& device) {
  const double element = bytes_per_element(precision);
  const double bytes_per_score = 2 * element + (shape.dropout ? 2 * element + 1 : 0);
  const OperatorCost streams =
      pointwise(Bytes(bytes_per_score * shape.scores()), Flops(kSoftmaxFlops * shape.scores()),
                shape.dropout ? 2 : 1, device);
  const Seconds products = gemm(score_product(shape), precision, device, {element, false}).time +
                           gemm(value_product(shape), precision, device, {element, false}).time;
  return {streams.time + products, streams.time > products ? Bound::hbm : Bound::compute};
}

OperatorCost naive_backward(const AttentionShape& shape, Precision precision, const DeviceSpec& device) {
  const double element = bytes_per_element(precision);
  const double bytes_per_score = 3 * element + (shape.dropout ? 2 * element + 1 : 0);
  const OperatorCost streams =
      pointwise(Bytes(bytes_per_score * shape.scores()), Flops(kSoftmaxFlops * shape.scores()),
                shape.dropout ? 2 : 1, device);
  const GemmOutput output{element, false};
  const Seconds products = gemm(score_product(shape), precision, device, output).time +            // dP
                           gemm(value_product(shape), precision, device, output).time +            // dQ
                           2 * gemm(key_gradient_product(shape), precision, device, output).time;  // dK, dV
  return {streams.time + products, streams.time > products ? Bound::hbm : Bound::compute};
}

OperatorCost decode(const AttentionShape& shape, Precision kv_precision, const DeviceSpec& device) {
  const double cache =
      2 * bytes_per_element(kv_precision) * shape.batch * shape.kv_heads * shape.keys * shape.head_dim;
  const double flops = (4 * shape.head_dim + kSoftmaxFlops) * shape.scores();
  return pointwise(Bytes(cache), Flops(flops), 1, device);
}

}  // namespace shardscape::compute
