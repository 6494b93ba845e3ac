// Final norm, LM head and, in training, the fp32 cross-entropy, on the last stage. The vocabulary is split
// over the tensor group, padded so that every rank has whole columns.
//
// In training modules predict further tokens (moe.mtp_layers; DeepSeek-V3, arXiv:2412.19437, section 2.2), each with
// an embedding, two norms, a projection and a layer behind the last layer of the model, on the stage that the layout of
// the pipeline gives it, and with a pass of its own through the head. Recompute policies leave them alone.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/layer_key.h"
#include "engine/model/operator.h"
#include "engine/spec/scenario.h"

namespace shardscape::model {

/// The operators for `tokens` tokens in each of key.microbatch sequences; in prefill the head runs on the last token of
/// each only.
std::vector<Operator> head_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                     Mode mode);
/// The operators of one module that predicts a further token in training, without its pass through the head.
std::vector<Operator> further_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens);
std::vector<Operator> decode_head_operators(const Setting& setting, const LayerKey& key);

/// Bytes of logits and gradients that are live while one loss of a microbatch is computed on one rank, with what the
/// losses of further tokens keep meanwhile.
Bytes logits_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens);
/// Bytes that stay until backward where it does not follow at once: the fp32 probabilities, or the logits where the
/// loss is fused.
Bytes saved_logits_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens);

/// Parameters of the LM head on one rank; a tied head counts as well.
double head_parameters(const ModelSpec& model, std::int32_t tensor);

}  // namespace shardscape::model
