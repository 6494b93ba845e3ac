#include "engine/compute/kernel_alone.h"

namespace shardscape::compute {

GemmCost gemm_alone(const GemmShape& shape, Precision precision, const DeviceSpec& device) {
  return gemm(shape, precision, device, {output_bytes(precision), false}, {{}, {}, true});
}

OperatorCost prompt_attention_alone(const AttentionShape& shape, AttentionKernel, Precision precision,
                                    const DeviceSpec& device) {
  return flash_forward(shape, precision, device);
}

OperatorCost decode_attention_alone(const AttentionShape& shape, AttentionKernel, Precision kv_precision,
                                    const DeviceSpec& device) {
  return decode(shape, kv_precision, device);
}

}  // namespace shardscape::compute
