// Kernels as benchmarks time them: one kernel by itself, launched over and over for a moment, its inputs out of
// L2. What tables of kernels are held against, and `shardscape gemm --burst` and `attention` print.
#pragma once

#include "engine/compute/attention.h"
#include "engine/compute/gemm.h"
#include "engine/spec/stack.h"

namespace shardscape::compute {

/// C[m,n] = A[m,k] B[k,n] once. All extents >= 1; the device must support `precision`.
GemmCost gemm_alone(const GemmShape& shape, Precision precision, const DeviceSpec& device);

/// Attention of whole prompts: shape.queries = shape.keys tokens of each of shape.batch sequences, causal
/// (shape.visible 0.5), with what the kernel does beside it in the same call. `kernel` must be fused.
OperatorCost prompt_attention_alone(const AttentionShape& shape, AttentionKernel kernel, Precision precision,
                                    const DeviceSpec& device);

/// One more token for each of shape.batch sequences that have shape.keys tokens each, this one included
/// (tables that give the step of the last one: step + 1). `kv_precision` is that of the cache.
OperatorCost decode_attention_alone(const AttentionShape& shape, AttentionKernel kernel,
                                    Precision kv_precision, const DeviceSpec& device);

}  // namespace shardscape::compute
