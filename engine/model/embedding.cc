#include "engine/model/embedding.h"

#include "engine/model/operator_builder.h"

namespace shardscape::model {

std::vector<Operator> embedding_operators(const Setting& setting, const LayerKey& key, std::int64_t tokens,
                                          Mode mode) {
  const auto count = static_cast<double>(tokens);
  const OperatorBuilder b(setting, key, count, count, mode);
  std::vector<Operator> ops;
  Operator lookup;
  lookup.name = "embedding";
  lookup.forward = {2 * b.tensor(b.hidden()), Flops(0), 1};
  lookup.backward = {Bytes(b.tokens() * b.hidden() * (b.element() + 2 * kFp32Bytes)), Flops(0), 1};
  ops.push_back(lookup);
  ops.push_back(b.leave_tensor_region("embedding_reduce"));
  if (b.model().embedding_norm) ops.push_back(b.norm("embedding_norm"));
  if (b.embedding_dropout()) ops.push_back(b.residual("embedding_dropout", true));
  return ops;
}

std::vector<Operator> decode_embedding_operators(const Setting& setting, const LayerKey& key) {
  return embedding_operators(setting, {key.tensor, 1, key.microbatch}, 1, Mode::decode);
}

double embedding_parameters(const ModelSpec& model, std::int32_t tensor) {
  // Position table and norm, whole on every rank.
  const double whole = model.position_parameters() + model.embedding_norm_parameters();
  return (model.embedding_parameters() - whole) / tensor + whole;
}

}  // namespace shardscape::model
