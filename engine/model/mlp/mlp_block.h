// What the engine asks of a kind of MLP. A kind is one file beside this one and an entry in the tables of
// block_kinds() (model/block_kinds.cc).
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
  /// Appends the operators of one rank. `input`: bytes that the first projection keeps of its input.
  virtual void append_operators(std::vector<Operator>& ops, const OperatorBuilder& b, Bytes input) const = 0;
  /// Whether the MLP works on all tokens of the tensor group, whose ranks each give a part of the output's sum.
  [[nodiscard]] virtual bool in_tensor_region(const OperatorBuilder& /*b*/) const { return true; }
  /// The part of a block by which stacks name this MLP when they recompute it.
  [[nodiscard]] virtual RecomputePart part() const { return RecomputePart::mlp; }
  /// Elements per token, on one rank, of the gradients of inner tensors that live at once in backward.
  [[nodiscard]] virtual double gradient_width(const Setting& setting, const LayerKey& key) const = 0;
  /// Parameters on one rank of a tensor group, routed experts not counted.
  [[nodiscard]] virtual PartParameters parameters(const ModelSpec& model, std::int32_t tensor) const = 0;
  /// Parameters of the routed experts on one rank.
  [[nodiscard]] virtual PartParameters expert_parameters(const ModelSpec& /*model*/,
                                                         const ExpertSplit& /*split*/) const {
    return {};
  }
  /// Weights of the whole model's MLP that a token is multiplied with, per block.
  [[nodiscard]] virtual double product_parameters(const ModelSpec& model) const = 0;
  /// The rule that a tensor degree breaks for this MLP; none where the degree divides its widths. `splits_experts`:
  /// whether it splits routed experts, too.
  [[nodiscard]] virtual Reason tensor_rule(const ModelSpec& model, std::int32_t tensor,
                                           bool splits_experts) const = 0;
};

}  // namespace shardscape::model
