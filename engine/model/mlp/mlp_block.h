// What the engine asks of a kind of MLP. A kind is one file beside this one and a row in block.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/operator_builder.h"
#include "engine/model/parameters.h"
#include "engine/spec/verdict.h"

namespace shardscape::model {

class MlpBlock {
 public:
  virtual ~MlpBlock() = default;
  /// On one rank. `input`: what the first projection keeps of its input.
  virtual void append_operators(std::vector<Operator>& ops, const OperatorBuilder& b, Bytes input) const = 0;
  /// Whether it works on all tokens of the tensor group, which sums up its outputs.
  [[nodiscard]] virtual bool in_tensor_region(const OperatorBuilder& /*b*/) const { return true; }
  /// What a stack calls all of it, where it recomputes that.
  [[nodiscard]] virtual RecomputePart part() const { return RecomputePart::mlp; }
  /// Elements per token of the gradients of inner tensors that live at once in backward, on one rank.
  [[nodiscard]] virtual double gradient_width(const Setting& setting, const LayerKey& key) const = 0;
  /// On one rank of a tensor group, experts not counted.
  [[nodiscard]] virtual PartParameters parameters(const ModelSpec& model, std::int32_t tensor) const = 0;
  /// Of the experts that lie on one rank.
  [[nodiscard]] virtual PartParameters expert_parameters(const ModelSpec& /*model*/,
                                                         const ExpertSplit& /*split*/) const {
    return {};
  }
  /// Weights that a token meets in products, of the whole model.
  [[nodiscard]] virtual double product_parameters(const ModelSpec& model) const = 0;
  /// The rule of its own that a tensor degree breaks; none where it divides. `splits_experts`: of routed experts,
  /// too.
  [[nodiscard]] virtual Reason tensor_rule(const ModelSpec& model, std::int32_t tensor,
                                           bool splits_experts) const = 0;
};

}  // namespace shardscape::model
