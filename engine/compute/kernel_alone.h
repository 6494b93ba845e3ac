// Kernels as benchmarks time them: one kernel launched over and over for a short time, its inputs not in L2. Tables of
// kernels are compared with these times, and `shardscape gemm --burst` and `attention` print them.
#pragma once

#include "engine/compute/attention.h"
#include "engine/compute/gemm.h"
#include "engine/spec/stack.h"

namespace shardscape::compute {

/// Cost of C[m,n] = A[m,k] B[k,n] alone. All extents >= 1; the device must support `precision`.
GemmCost gemm_alone(const GemmShape& shape, Precision precision, const DeviceSpec& device);

/// Attention of whole causal prompts: shape.queries = shape.keys tokens in each of shape.batch sequences (shape.visible
/// 0.5), with the other work of the same call. `kernel` must be fused.
OperatorCost prompt_attention_alone(const AttentionShape& shape, AttentionKernel kernel, Precision precision,
                                    const DeviceSpec& device);

/// Decodes one more token in each of shape.batch sequences of shape.keys tokens, the new one included (where a table
/// gives the step of the last token: step + 1). `kv_precision` is the type of the cache.
OperatorCost decode_attention_alone(const AttentionShape& shape, AttentionKernel kernel,
                                    Precision kv_precision, const DeviceSpec& device);

}  // namespace shardscape::compute
