#include "engine/model/head.h"

#include "engine/model/block_kinds.h"
#include "engine/model/embedding.h"
#include "engine/model/operator_builder.h"
#include "engine/model/partition.h"

namespace shardscape::model {

namespace {

/// Vector FLOPs per logit; the kernels are bound by HBM on known devices.
constexpr double kLossFlops = 10;

double local_vocabulary(const ModelSpec& model, std::int32_t tensor) {
  return static_cast<double>((model.vocabulary + tensor - 1) / tensor);
}

/// Logits of one microbatch on one rank.
double local_logits(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  return static_cast<double>(tokens) * key.microbatch / key.context *
         local_vocabulary(setting.model, key.tensor);
}

/// Passes of each token through the head in training: one for the next token, one for each further token.
std::int32_t losses_of(const Setting& setting) {
  return 1 + further_modules(setting.model, setting.workload.phase);
}

Operator cross_entropy(const OperatorBuilder& b, double columns) {
  Operator loss;
  loss.name = "cross_entropy";
  const double elements = b.tokens() * columns;
  // Unfused: logits are cast to fp32, reduced twice (maximum, sum of exponentials) and written as probabilities, which
  // backward turns into gradients.
  const bool fused = b.stack().fused_loss;
  const double forward = fused ? b.element() : b.element() + 4 * kFp32Bytes;
  const double backward = fused ? 2 * b.element() : kFp32Bytes + 2 * b.element();
  loss.forward = {Bytes(forward * elements), Flops(kLossFlops * elements), fused ? 1.0 : 4.0};
  loss.backward = {Bytes(backward * elements), Flops(kLossFlops * elements), fused ? 1.0 : 2.0};
  return loss;
}

/// cap * tanh(logits / cap); backward reads the gradient and the output.
Operator soft_cap(const OperatorBuilder& b, double columns) {
  Operator cap;
  cap.name = "logit_soft_cap";
  const double elements = b.tokens() * columns;
  const double kernels = b.stack().fused_pointwise ? 1 : 3;  // kernels of division, tanh and product
  cap.forward = {Bytes(2 * kernels * b.element() * elements), Flops(kLossFlops * elements), kernels};
  cap.backward = {Bytes((2 * kernels + 1) * b.element() * elements), Flops(kLossFlops * elements), kernels};
  return cap;
}

void append_output(std::vector<Operator>& ops, const OperatorBuilder& b) {
  const double columns = local_vocabulary(b.model(), b.key().tensor);
  ops.push_back(b.norm("final_norm"));
  ops.push_back(b.enter_tensor_region("head_gather"));
  ops.push_back(b.gemm("lm_head", b.hidden(), columns, b.gathered_input(b.policy().ends)));
  ops.back().operands = b.policy().ends;
  if (b.model().logit_soft_cap) ops.push_back(soft_cap(b, columns));
  if (b.mode() == Mode::training) ops.push_back(cross_entropy(b, columns));
}

}  // namespace

std::vector<Operator> head_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                     Mode mode) {
  if (mode != Mode::training) return decode_head_operators(setting, key);
  const auto count = static_cast<double>(tokens);
  const OperatorBuilder b(setting, key, count, count, mode);
  std::vector<Operator> ops;
  for (std::int32_t i = 0; i < losses_of(setting); ++i) append_output(ops, b);
  return ops;
}

/// The embedding of the tokens one step ahead and the hidden state each pass a norm, then together one product, then a
/// layer of the last layer's kind.
std::vector<Operator> further_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  constexpr Mode kMode = Mode::training;
  const auto count = static_cast<double>(tokens);
  const OperatorBuilder b(setting, key, count, count, kMode);
  std::vector<Operator> ops = embedding_operators(setting, key, tokens, kMode);
  ops.push_back(b.norm("embedding_norm"));
  ops.push_back(b.norm("hidden_norm"));
  const Bytes input(b.policy().operand_bytes(b.policy().products) * b.own_tokens() * 2 * b.hidden());
  ops.push_back(b.own_gemm("further_projection", 2 * b.hidden(), b.hidden(), input));
  const std::size_t last = kind_of_layer(setting.model, setting.model.layers - 1);
  const std::vector<Operator> layer = block_operators(setting, last, key, tokens, kMode);
  ops.insert(ops.end(), layer.begin(), layer.end());
  for (Operator& op : ops) op.cut = false;  // its backward is not split under any schedule
  return ops;
}

/// The head runs on one token per sequence, on the last context rank, which has the last token of a prompt.
std::vector<Operator> decode_head_operators(const Setting& setting, const LayerKey& key) {
  std::vector<Operator> ops;
  append_output(ops, {setting, {key.tensor, 1, key.microbatch}, 1, 1, Mode::decode});
  return ops;
}

Bytes logits_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  const double further = losses_of(setting) - 1;
  const double element = bytes_per_element(setting.policy().activations);
  // Per logit: the logit and its gradient, the capped logit where there is a cap, an fp32 copy where the loss is
  // unfused.
  const double per_logit =
      (setting.model.logit_soft_cap ? 3 : 2) * element + (setting.system.stack.fused_loss ? 0 : kFp32Bytes);
  // While one loss is computed, the logits of the other losses are kept for their backward.
  return Bytes(per_logit * local_logits(setting, key, tokens)) +
         further / (further + 1) * saved_logits_bytes(setting, key, tokens);
}

Bytes saved_logits_bytes(const Setting& setting, const LayerKey& key, std::int64_t tokens) {
  const bool fused = setting.system.stack.fused_loss;
  const double per_logit = fused ? bytes_per_element(setting.policy().activations) : kFp32Bytes;
  return Bytes(losses_of(setting) * per_logit * local_logits(setting, key, tokens));
}

double head_parameters(const ModelSpec& model, std::int32_t tensor) {
  return static_cast<double>(model.vocabulary * (model.hidden + (model.head_bias ? 1 : 0))) / tensor;
}

}  // namespace shardscape::model
