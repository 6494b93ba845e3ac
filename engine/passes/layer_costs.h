// Device time, collectives and saved bytes of a block, the embedding and the head: the part of a prediction
// that plans share.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engine/compute/gradients.h"
#include "engine/model/layer_key.h"
#include "engine/model/operator.h"
#include "engine/spec/scenario.h"

namespace shardscape::passes {

/// What one operator costs on one device, without its communication.
struct OperatorTimes {
  compute::OperatorCost forward, backward;
  Seconds weight = Seconds(0);  ///< the part of backward that computes gradients of weights
  Work weight_work = {};        ///< likewise
};

/// Prices one operator. Backward of a product is dgrad and wgrad, the latter accumulating into the stack's
/// gradient buffer.
OperatorTimes price(const model::Operator& op, const Setting& setting);

/// The kernels of a product's backward one by one; together they are price().backward.
struct ProductGradients {
  compute::GemmShape input_shape, weight_shape;
  compute::OperatorCost input;
  compute::WeightGradientCost weight;
};
ProductGradients price_gradients(const model::Operator& op, const Setting& setting);

/// The sums over an operator list.
struct LayerCost {
  Seconds forward, backward;  ///< device time
  Seconds weight;             ///< the part of backward that computes gradients of the matrices' weights
  double weight_kernels = 0;  ///< the same as a share of the kernels of backward, 0..1
  Seconds attention_core;     ///< forward of what selective recompute repeats
  Seconds attention_core_backward;
  std::vector<model::CollectiveCall> forward_calls, backward_calls;
  double forward_call_count = 0, backward_call_count = 0;
  std::array<Bytes, 3> saved{};  ///< by Recompute
  // Of blocks.
  Bytes put_off;  ///< what weight gradients need, see model::put_off_bytes
  Bytes working;  ///< see model::backward_working_bytes
};

LayerCost price_layer(const std::vector<model::Operator>& operators, const Setting& setting);

/// Everything about the layers of a training step that depends on a LayerKey only.
struct LayerCosts {
  std::vector<LayerCost> blocks;  ///< by kind, see model::block_kinds
  LayerCost embedding, head;
  Bytes logits;
  Bytes logits_saved;  ///< from the loss to its backward
  Bytes boundary;
};

LayerCosts price_layers(const Setting& setting, const model::LayerKey& key);

}  // namespace shardscape::passes
