// Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, arXiv:2405.04434, section 2.1). Down-projections
// make a latent vector of the queries and one of keys and values, each with a norm, and one key with positions
// that all heads share.
//
// training, prompts  up-projections expand them to the heads' queries, keys and values, of nope_dim + rope_dim and
//                    value_dim elements, and the core is that of any heads, of their mean width
// decode             expanding is absorbed into the query and the output: per head [tokens, nope_dim] x [nope_dim,
//                    kv_rank] before the core and [tokens, kv_rank] x [kv_rank, value_dim] behind it. Scores are
//                    over the kv_rank + rope_dim elements that the cache keeps, values over kv_rank of the same
//
// A server's down-projections are one product, and their norms one kernel (vLLM and SGLang: fused_qkv_a_proj,
// TensorRT-LLM: kv_a_proj_with_mqa).
//
// A tensor group splits the heads: up-projections and output. Every rank has the down-projections, on its own
// tokens with sequence parallelism, so that latent vectors are gathered in place of hidden states (as in
// Megatron-Core's MLASelfAttention); the cache is the same on every rank.
//
// Left out: expanding the keys of earlier pieces again when a prompt is read in pieces.
#pragma once

#include "engine/model/attention/attention_block.h"

namespace shardscape::model {

class Mla final : public AttentionBlock {
 public:
  void append_operators(std::vector<Operator>& ops, const OperatorBuilder& b) const override;
  /// Projections down and up with norms between them, rotary parts of their own, and the assembly of keys and values.
  [[nodiscard]] double launches() const override { return 2; }
  [[nodiscard]] KvUnits kv(const ModelSpec& model) const override { return {1, model.latent->cached()}; }
  [[nodiscard]] PartParameters parameters(const ModelSpec& model, std::int32_t tensor) const override;
  [[nodiscard]] double product_parameters(const ModelSpec& model) const override {
    return model.attention_matrix_parameters();
  }
  [[nodiscard]] double core_flops(const ModelSpec& model, double tokens) const override;
  [[nodiscard]] Reason tensor_rule(const ModelSpec& model, std::int32_t tensor) const override {
    return model.heads % tensor != 0 ? Reason::heads_by_tensor : Reason::none;
  }
  [[nodiscard]] double window(const ModelSpec& /*model*/) const override { return 0; }
};

}  // namespace shardscape::model
