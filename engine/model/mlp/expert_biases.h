// The operators of experts with biases in training where no fused kernel takes the biases
// (StackProfile::Experts::fused_bias). Each row gets the bias of its expert, and the rows of an expert lie together, so
// that plain operators run expert by expert or over all rows.
//
// Counted as Megatron Core writes them (megatron/core/transformer/moe/experts.py, TEGroupedMLP, its activation without
// bias_activation_fusion and _apply_bias) for the experts of gpt-oss, the only published ones with biases, which clamp
// both inputs of a gated activation and add one to the second (arXiv:2508.10925, section 2). Every operator reads its
// inputs and writes its output; what the router's fp32 weight touches is fp32. Of e bytes a value of a tensor:
//   activation, forward    2 clamps 4e, nonlinearity 2e, one more 2e, product 3e, weighted e + 4, narrowed 4 + e
//              backward    widened e + 4; of the product e + 12 (weighted 8, narrowed 4 + e) and of the weights e + 12
//                          (4 + e and 4, summed 4); both factors 6e, nonlinearity 3e, clamps 6e, halves joined 4e;
//                          gradient of the first bias, summed over the rows, 2e
//              not gated   no clamps, no product, one input: forward 2e + ..., backward 3e + ... and e of the bias
//   second bias, forward   weighted 4, added e + 8, parts joined 8, narrowed 4 + e
//                backward  widened e + 4, narrowed 4 + e, parts joined 2e; of the bias 8 and summed 4, of the weights
//                          8 and summed 4
// For backward the activation keeps its inputs, the input of the nonlinearity, both factors and their product.
#pragma once

#include "engine/model/operator_builder.h"

namespace shardscape::model {

/// Replaces activation() over `elements` elements of the inner width of `experts` experts.
Operator plain_biased_activation(const OperatorBuilder& b, double elements, double experts);

/// The operator that adds the biases behind the second product: over `elements` elements of its output, of `experts`
/// experts.
Operator plain_expert_bias(const OperatorBuilder& b, double elements, double experts);

}  // namespace shardscape::model
