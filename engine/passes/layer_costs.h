// Device time, collectives and saved bytes of a block, the embedding and the head: the part of a prediction
// that plans share.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engine/compute/gradients.h"
#include "engine/passes/layer_parts.h"
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

/// The share of an operator's times that a part takes.
compute::OperatorCost cost_of(const OperatorTimes& times, Part part);

/// The sums over one part of an operator list.
struct PartCost {
  Seconds device;
  Seconds attention_core;                       ///< the attention core's part of `device`
  std::vector<workload::CollectiveCall> calls;  ///< in the order of the operators
  double call_count = 0;
};

struct LayerCost {
  std::array<PartCost, kParts> parts;
  double weight_kernels = 0;     ///< share of the kernels of backward that compute gradients of weights, 0..1
  std::array<Bytes, 3> saved{};  ///< by Recompute
  Bytes put_off;                 ///< what weight gradients need, see workload::put_off_bytes

  [[nodiscard]] const PartCost& operator[](Part part) const { return parts[static_cast<std::size_t>(part)]; }
};

LayerCost price_layer(const std::vector<workload::Operator>& operators, const Setting& setting);

/// The layers of a model.
enum class LayerKind : std::uint8_t { embedding, block, head };
inline constexpr std::size_t kLayerKinds = 3;
inline constexpr LayerKind kEveryLayerKind[] = {LayerKind::embedding, LayerKind::block, LayerKind::head};

/// The operators of a layer in training.
std::vector<workload::Operator> training_operators(LayerKind kind, const Setting& setting,
                                                   const workload::LayerKey& key);

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

  [[nodiscard]] const LayerCost& operator[](LayerKind kind) const {
    return kind == LayerKind::block ? block : kind == LayerKind::head ? head : embedding;
  }
};

/// The costs of all layers in training.
LayerCosts price_layers(const Setting& setting, const workload::LayerKey& key);

}  // namespace shardscape::passes
