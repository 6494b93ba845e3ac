// Device time, collectives and saved bytes of a block, the embedding and the head: what plans with one LayerKey share.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/enum_array.h"
#include "engine/base/memo.h"
#include "engine/compute/gradients.h"
#include "engine/model/layer_key.h"
#include "engine/model/stage_layers.h"
#include "engine/spec/scenario.h"
#include "engine/step/layers/layer_parts.h"
#include "engine/step/layers/overlap.h"

namespace shardscape::step {

using model::OperatorTimes;

/// What the price of a product that is not grouped depends on, beside the setting.
struct ProductKey {
  compute::GemmShape shape;
  Precision operands = Precision::bf16;
  double share = 1;
  friend bool operator==(const ProductKey&, const ProductKey&) = default;
};
/// Prices of products in one setting: layers of other plans have many of the same shape.
using ProductMemo = Memo<ProductKey, OperatorTimes>;

/// Prices one operator. Backward of a product is dgrad and wgrad, the latter accumulating into the stack's
/// gradient buffer. `known`: of this setting; null: nothing is remembered.
OperatorTimes price(const model::Operator& op, const Setting& setting, ProductMemo* known = nullptr);

/// Prices a product of that shape as the operator's kernel runs it (experts together on devices of a known
/// architecture), with its result written as an activation.
compute::OperatorCost price_product(const model::Operator& op, const compute::GemmShape& shape,
                                    const DeviceSpec& device);

/// The kernels of a product's backward; their times add up to price().backward.
struct ProductGradients {
  compute::GemmShape input_shape, weight_shape;
  compute::OperatorCost input;
  compute::WeightGradientCost weight;
};
ProductGradients price_gradients(const model::Operator& op, const Setting& setting);

/// The share of an operator's times that belongs to a part.
compute::OperatorCost cost_of(const OperatorTimes& times, LayerPart part);

/// Sums over the operators of one part of a layer.
struct PartCost {
  Seconds device;
  Seconds attention_core;   ///< the part of `device` that is the attention core
  Seconds experts;          ///< the part of `device` that is experts whose loads differ
  Seconds lead;             ///< of a server: `device` less what it is where loads are alike
  double idler_others = 0;  ///< model::idler_others()
  struct Call : model::CollectiveCall {
    std::int32_t hider = -1;  ///< index in `works` of the work that hides it (overlap.h); -1: none does
    std::size_t piece = 0;    ///< index in `between` of the piece that it stands in
  };
  std::vector<Call> calls;  ///< in the order of their operators
  /// A call as it runs: its index in `calls`, and the compute since the one before it or since the part began.
  struct Turn {
    std::size_t call = 0;
    Seconds before;
  };
  std::vector<Turn> turns;  ///< in the order of execution
  std::vector<Seconds> works;
  std::optional<std::size_t> piece_of_core;  ///< Call::piece of the attention core
  double call_count = 0;
  bool meets_host = false;  ///< the host waits for a result of the device before it launches on
  /// An exchange of experts, and the compute that runs while it is under way.
  struct Overlap {
    model::CollectiveCall exchange;
    Seconds beside;
  };
  std::vector<Overlap> overlaps;
  /// Seconds of compute before, between and behind the exchanges of experts, in the order of execution.
  std::vector<Seconds> between;
};

/// Device time of an operator's forward; inference needs no gradients.
Seconds price_forward(const model::Operator& op, const Setting& setting);
/// Sums up forward of a server's layer, in which attention counts nothing: it is priced for each iteration.
PartCost price_served(const std::vector<model::Operator>& operators, const Setting& setting);

struct LayerCost {
  std::array<PartCost, kParts> parts;
  double routers = 0;  ///< number of expert layers in it
  /// Number of kernels of plain operators (model::Operator::plain).
  double plain_forward = 0, plain_backward = 0;
  /// Share of the kernels of backward that compute gradients of weights, 0..1; here and below without shared experts'.
  double weight_kernels = 0;
  /// Share of the kernels of forward that selective recompute launches again, 0..1.
  double repeated_kernels = 0;
  std::array<Bytes, 3> saved{};  ///< index: Recompute; bytes saved for backward
  Bytes put_off;                 ///< bytes that deferred weight gradients need, see model::put_off_bytes
  Bytes working;                 ///< for blocks, see model::backward_working_bytes

  [[nodiscard]] const PartCost& operator[](LayerPart part) const {
    return parts[static_cast<std::size_t>(part)];
  }
};

LayerCost price_layer(const std::vector<model::Operator>& operators, const Setting& setting,
                      ProductMemo* known = nullptr);

/// A layer: the embedding, the head, a module that predicts a further token, or a block of one of the model's kinds
/// (model::block_kinds).
struct LayerKind {
  enum class Role : std::uint8_t { embedding, head, further, block };
  Role role = Role::block;
  std::size_t block = 0;

  [[nodiscard]] constexpr bool is_block() const { return role == Role::block; }
  /// Index in tables by kind of layer.
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(role) + block; }
  friend constexpr bool operator==(const LayerKind&, const LayerKind&) = default;
};
inline constexpr LayerKind kEmbeddingLayer{LayerKind::Role::embedding}, kHeadLayer{LayerKind::Role::head},
    kFurtherLayer{LayerKind::Role::further};
constexpr LayerKind block_layer(std::size_t kind) { return {LayerKind::Role::block, kind}; }
inline constexpr std::size_t kLayerKinds = block_layer(model::kMostBlockKinds).index();

/// All kinds of layers that a model has.
std::vector<LayerKind> layer_kinds(const ModelSpec& model);

/// The operators of a layer in training, for the rank that `key` names.
std::vector<model::Operator> training_operators(LayerKind kind, const Setting& setting,
                                                const model::LayerKey& key);

/// Calls use(dispatch, combine, work) for each combine of a part, with so much work of the busiest rank between both.
/// `time(call)`: seconds of one call.
template <class Time, class Use>
void each_combine(const PartCost& part, const Time& time, const Use& use) {
  Seconds work = part.experts;
  const PartCost::Call* dispatch = nullptr;
  for (const PartCost::Call& call : part.calls) {
    if (call.group == ParallelGroup::expert && call.piece <= 0) dispatch = &call;
    if (call.group == ParallelGroup::expert_tensor) work += call.repeats * time(call);
  }
  for (const PartCost::Call& call : part.calls)
    if (call.group == ParallelGroup::expert && call.piece > 0) use(*dispatch, call, work);
}

/// Seconds of a part's calls by the kind of their groups, less what is hidden for tensor groups. `time(call)`: seconds
/// of one call; `late(dispatch, combine, work)`: of a combine (each_combine()).
template <class Time, class Late>
EnumArray<ParallelGroup, Seconds> call_times(const PartCost& part, const StackProfile::Communication& stack,
                                             const Time& time, const Late& late) {
  EnumArray<ParallelGroup, Seconds> sum;
  boost::container::small_vector<Seconds, 8> beside(stack.tensor_overlap > 0 ? part.works.size() : 0);
  for (const PartCost::Call& call : part.calls) {
    if (call.group == ParallelGroup::expert && call.piece > 0) continue;
    const bool hides = !beside.empty() && call.hider >= 0;
    (hides ? beside[static_cast<std::size_t>(call.hider)] : sum[call.group]) += call.repeats * time(call);
  }
  for (std::size_t i = 0; i < beside.size(); ++i) {
    Seconds room = part.works[i];
    sum[ParallelGroup::tensor] += beside[i] - hide(beside[i], stack.tensor_overlap, room);
  }
  each_combine(part, time, [&](const PartCost::Call& dispatch, const PartCost::Call& combine, Seconds work) {
    sum[combine.group] += combine.repeats * late(dispatch, combine, work);
  });
  return sum;
}

/// How much of a layer's calls over groups of a kind attention of `attention` seconds hides; 0 unless they are context
/// groups.
Seconds hidden_by_attention(const StackProfile::Communication& stack, ParallelGroup group, Seconds comm,
                            Seconds attention);

/// Seconds that a pass through a part takes before, between and behind its exchanges of experts: compute, calls of
/// ranks that split an expert, and what calls of tensor and context groups expose there. `time(call)`: seconds of one
/// call.
template <class Time>
std::vector<Seconds> piece_times(const PartCost& part, const StackProfile::Communication& stack,
                                 const Time& time) {
  std::vector<Seconds> pieces = part.between;
  Seconds context;
  std::vector<Seconds> beside(part.works.size());
  std::vector<std::size_t> piece_of_work(part.works.size());
  for (const PartCost::Call& call : part.calls) {
    if (is_of_experts(call.group) && call.group != ParallelGroup::expert_tensor) continue;
    const Seconds all = call.repeats * time(call);
    if (call.group == ParallelGroup::context && part.piece_of_core) {
      context += all;
    } else if (call.hider >= 0) {
      const auto work = static_cast<std::size_t>(call.hider);
      beside[work] += all;
      piece_of_work[work] = call.piece;
    } else {
      pieces[call.piece] += all;
    }
  }
  for (std::size_t i = 0; i < beside.size(); ++i) {
    Seconds room = part.works[i];
    pieces[piece_of_work[i]] += beside[i] - hide(beside[i], stack.tensor_overlap, room);
  }
  if (part.piece_of_core) {
    pieces[*part.piece_of_core] +=
        context - hidden_by_attention(stack, ParallelGroup::context, context, part.attention_core);
  }
  return pieces;
}

/// Everything about the layers of a training step that depends on a LayerKey only.
struct LayerCosts {
  std::array<LayerCost, kLayerKinds> layers;  ///< index: kind of layer; see operator[]
  Bytes logits;
  Bytes logits_saved;  ///< kept from the loss to its backward
  Bytes boundary;

  [[nodiscard]] const LayerCost& operator[](LayerKind kind) const { return layers[kind.index()]; }
};

/// Prices the layers of a training step.
LayerCosts price_layers(const Setting& setting, const model::LayerKey& key, ProductMemo* known = nullptr);

}  // namespace shardscape::step
