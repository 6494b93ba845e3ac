// The MLP through which every token goes: projection in (two, where it is gated), activation, projection out.
// A tensor group splits the inner width.
#pragma once

#include "engine/model/mlp/mlp_block.h"

namespace shardscape::model {

class DenseMlp final : public MlpBlock {
 public:
  void append_operators(std::vector<Operator>& ops, const OperatorBuilder& b, Bytes input) const override;
  [[nodiscard]] double gradient_width(const Setting& setting, const LayerKey& key) const override;
  [[nodiscard]] PartParameters parameters(const ModelSpec& model, std::int32_t tensor) const override;
  [[nodiscard]] double product_parameters(const ModelSpec& model) const override;
  [[nodiscard]] Reason tensor_rule(const ModelSpec& model, std::int32_t tensor,
                                   bool splits_experts) const override;
};

}  // namespace shardscape::model
