#include "engine/compute/kernel_alone.h"

#include "engine/compute/fused_attention.h"

namespace shardscape::compute {

GemmCost gemm_alone(const GemmShape& shape, Precision precision, const DeviceSpec& device) {
  return gemm(shape, precision, device, {output_bytes(precision)}, {.burst = true});
}

OperatorCost prompt_attention_alone(const AttentionShape& shape, AttentionKernel kernel, Precision precision,
                                    const DeviceSpec& device) {
  OperatorCost cost = fused_forward(shape, kernel, precision, device);
  cost.time += prompt_preparation(shape, precision, device);
  return cost;
}

OperatorCost decode_attention_alone(const AttentionShape& shape, AttentionKernel kernel,
                                    Precision kv_precision, const DeviceSpec& device) {
  const bool grouped = shape.heads > shape.kv_heads && shape.heads <= 32 * shape.kv_heads;
  // To judge by their times, the rows of TensorRT-LLM's kernel with grouped heads on Ampere have a cache of one byte
  // per value: with two bytes they would need more than the peak bandwidth of HBM.
  const bool eight_bits = kernel == AttentionKernel::trtllm && device.architecture == Architecture::ampere &&
                          grouped && kv_precision == Precision::bf16;
  OperatorCost cost =
      fused_decode(shape, kernel, eight_bits ? Precision::fp8 : kv_precision, device, LaunchedBy::itself);
  if (kernel == AttentionKernel::trtllm) cost.time += device.kernel_latency;
  return cost;
}

}  // namespace shardscape::compute
