#include "engine/compute/gradients.h"

#include <algorithm>

namespace shardscape::compute {

namespace {

/// Vector operations per parameter of algorithm 2: both moments 7, their corrections 2, root, quotient and epsilon 9
/// (root and quotient count 4 each, at the rate of the special-function units), decay and update 4.
constexpr double kAdamFlops = 22;

}  // namespace

WeightGradientCost weight_gradient(const GemmShape& shape, Precision precision, double buffer_bytes,
                                   const DeviceSpec& device) {
  const GemmCost fused =
      gemm(shape, precision, device, {.bytes_per_element = buffer_bytes, .accumulate = true});
  const GemmCost plain = gemm(shape, precision, device, {output_bytes(precision)});
  const Seconds product = std::min(plain.time, fused.time);
  // The buffer lies in HBM. If the whole kernel is not bound by HBM, accumulation adds the time that the buffer takes
  // through L2.
  const Bound way = fused.bound == Bound::hbm ? Bound::hbm : Bound::l2;
  const Work work{shape.flops(), plain.hbm_bytes};
  return {{product, plain.bound, work},
          {fused.time - product, way, Work{shape.flops(), fused.hbm_bytes} - work}};
}

OperatorCost optimizer_step(double parameters, const OptimizerState& state, const DeviceSpec& device) {
  if (parameters <= 0) return {Seconds(0), Bound::hbm};
  return pointwise(Bytes(state.traffic() * parameters), Flops(kAdamFlops * parameters), 1, device);
}

}  // namespace shardscape::compute
