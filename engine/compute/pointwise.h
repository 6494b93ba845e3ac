// Operators that stream tensors through the vector units: norms, rotary, softmax, activations, dropout,
// residuals, embedding, loss, optimizer.
//
//   time = kernel latency + max(bytes / sustained HBM bandwidth, vector FLOPs / vector peak)
//
// Assumptions: every tensor is read and written once per kernel and is too large to stay in L2 between
// kernels (a block's activations are hundreds of megabytes in training). Source: the roofline model
// (Williams, Waterman and Patterson 2009).
#pragma once

#include "engine/base/work.h"
#include "engine/compute/gemm.h"
#include "engine/spec/device.h"

namespace shardscape::compute {

struct OperatorCost {
  Seconds time;
  Bound bound = Bound::hbm;
  Work work = {};
};

/// `traffic`: bytes read and written together. `kernels`: number of launches that share the work.
OperatorCost pointwise(Bytes traffic, Flops vector_flops, double kernels, const DeviceSpec& device);

}  // namespace shardscape::compute
