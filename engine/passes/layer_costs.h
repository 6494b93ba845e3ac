// Device time, collectives and saved bytes of a block, the embedding and the head: the part of a prediction
// that plans share.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engine/compute/gradients.h"
#include "engine/spec/scenario.h"
#include "engine/workload/layers.h"

namespace shardscape::passes {

/// What one operator costs on one device, without its communication.
struct OperatorTimes {
  compute::OperatorCost forward, backward;
  Seconds weight = Seconds(0);  ///< the part of backward that computes gradients of weights
  Work weight_work = {};        ///< likewise
};

/// Prices one operator. Backward of a product is dgrad and wgrad, the latter accumulating into the stack's
/// gradient buffer.
OperatorTimes price(const workload::Operator& op, const Setting& setting);

/// The kernels of a product's backward one by one; together they are price().backward.
struct ProductGradients {
  compute::GemmShape input_shape, weight_shape;
  compute::OperatorCost input;
  compute::WeightGradientCost weight;
};
ProductGradients price_gradients(const workload::Operator& op, const Setting& setting);

/// The sums over an operator list.
struct LayerCost {
  Seconds forward, backward;  ///< device time
  Seconds weight;             ///< the part of backward that computes gradients of the matrices' weights
  double weight_kernels = 0;  ///< the same as a share of the kernels of backward, 0..1
  Seconds attention_core;     ///< forward of what selective recompute repeats
  Seconds attention_core_backward;
  std::vector<workload::CollectiveCall> forward_calls, backward_calls;
  double forward_call_count = 0, backward_call_count = 0;
  std::array<Bytes, 3> saved{};  ///< by Recompute
  Bytes put_off;                 ///< what weight gradients need, see workload::put_off_bytes
};

LayerCost price_layer(const std::vector<workload::Operator>& operators, const Setting& setting);

/// What calls of a layer over the groups of an axis, `comm` long, leave exposed beside so much attention.
Seconds exposed_calls(const StackProfile::Communication& stack, PlanAxis axis, Seconds comm,
                      Seconds attention);

/// Everything about layers that depends on a LayerKey only.
struct LayerCosts {
  LayerCost block, embedding, head;
  Bytes logits;
  Bytes logits_saved;      ///< training: from the loss to its backward
  Bytes backward_working;  ///< training: of one block, see workload::backward_working_bytes
  Bytes boundary;
};

/// `tokens` per sequence of the phase (sequence length, prompt).
LayerCosts price_layers(const Setting& setting, const workload::LayerKey& key, std::int64_t tokens,
                        workload::Mode mode);

/// The embedding, block and head of one decode step.
LayerCosts price_decode(const Setting& setting, const workload::LayerKey& key, double cached);

}  // namespace shardscape::passes
