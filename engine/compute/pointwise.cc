#include "engine/compute/pointwise.h"

#include <algorithm>

namespace shardscape::compute {

OperatorCost pointwise(Bytes traffic, Flops vector_flops, double kernels, const DeviceSpec& device) {
  const Seconds stream = traffic / device.hbm_sustained();
  const Seconds arithmetic = vector_flops / device.vector_peak();
  const Seconds launch = kernels * device.kernel_latency;
  const Seconds body = std::max(stream, arithmetic);
  const Bound bound = launch > body ? Bound::launch : stream >= arithmetic ? Bound::hbm : Bound::compute;
  return {launch + body, bound, {vector_flops, traffic}};
}

}  // namespace shardscape::compute
