// What training does with gradients: accumulating them over microbatches, and the optimizer step.
//
// accumulation  A weight's gradient is a product whose reduction runs over the tokens of one microbatch. Its
//               epilogue adds it to the buffer that holds the sum over microbatches (Megatron-LM's gradient
//               accumulation fusion; Narayanan et al. 2021): the output is read and written with the bytes of
//               the buffer, fp32 as a rule, instead of written with those of an activation. What that adds to
//               the time of the product is the accumulation's.
// optimizer     Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2) on the parameters
//               that a rank owns, as one multi-tensor kernel: a stream that reads the gradient, reads and
//               writes master copy and moments, and writes the weights in the compute type.
//
// Left out: the norm for gradient clipping, a kernel of its own for accumulation, optimizers with state that
// is not proportional to the parameters.
#pragma once

#include "engine/compute/pointwise.h"

namespace shardscape::compute {

struct WeightGradientCost {
  OperatorCost product;       ///< the product as if its output were an activation
  OperatorCost accumulation;  ///< what reading and writing the buffer adds to it
};

/// `shape`: the gradient's own product, [k, tokens] x [tokens, n]. `buffer_bytes`: bytes per element of the sum.
WeightGradientCost weight_gradient(const GemmShape& shape, Precision precision, double buffer_bytes,
                                   const DeviceSpec& device);

/// Bytes per parameter of each tensor that the optimizer touches.
struct OptimizerState {
  double gradient_bytes = 4;
  double master_bytes = 4;
  double moment_bytes = 8;  ///< bytes of both moments together
  double weight_bytes = 2;

  [[nodiscard]] double traffic() const {
    return gradient_bytes + 2 * (master_bytes + moment_bytes) + weight_bytes;
  }
};

/// One optimizer step on `parameters` parameters; 0 parameters take no time.
OperatorCost optimizer_step(double parameters, const OptimizerState& state, const DeviceSpec& device);

}  // namespace shardscape::compute
