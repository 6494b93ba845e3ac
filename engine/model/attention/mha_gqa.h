// Attention with as many KV heads as query heads, or with groups of query heads that share one (Ainslie et
// al. 2023, arXiv:2305.13245): QKV projection, rotary positions, core, output projection.
//
// Local attention (Beltagy et al. 2020, arXiv:2004.05150) meets the last ModelSpec::sliding_window tokens
// only: its scores, its cache and what decode streams end there. Its context ring still passes all keys.
//
// A tensor group splits the heads. Where it has more ranks than there are KV heads, each holds one of them,
// its weights and its cache.
#pragma once

#include "engine/model/attention/attention_block.h"

namespace shardscape::model {

class MhaGqa final : public AttentionBlock {
 public:
  explicit MhaGqa(bool local = false) : local_(local) {}
  void append_operators(std::vector<Operator>& ops, const OperatorBuilder& b) const override;
  [[nodiscard]] KvUnits kv(const ModelSpec& model) const override {
    return {model.kv_heads, 2 * model.head_dim};
  }
  [[nodiscard]] PartParameters parameters(const ModelSpec& model, std::int32_t tensor) const override;
  [[nodiscard]] double product_parameters(const ModelSpec& model) const override;
  [[nodiscard]] double core_flops(const ModelSpec& model, double tokens) const override;
  [[nodiscard]] Reason tensor_rule(const ModelSpec& model, std::int32_t tensor) const override;
  [[nodiscard]] double window(const ModelSpec& model) const override {
    return local_ ? static_cast<double>(model.sliding_window) : 0;
  }

 private:
  bool local_;
};

}  // namespace shardscape::model
