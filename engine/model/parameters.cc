#include "engine/model/parameters.h"

#include <algorithm>

#include "engine/model/block_kinds.h"
#include "engine/model/embedding.h"
#include "engine/model/head.h"

namespace shardscape::model {

Parameters& Parameters::operator+=(const Parameters& o) {
  count += o.count;
  tensors += o.tensors;
  weights += o.weights;
  copies += o.copies;
  return *this;
}

Parameters weights_of(const PartParameters& part, const PrecisionPolicy& policy) {
  return {part.matrices + part.vectors, part.tensors,
          Bytes(policy.operand_bytes(policy.weights) * part.matrices +
                bytes_per_element(policy.activations) * part.vectors),
          Bytes(policy.weight_copies * policy.operand_bytes(policy.products) * part.matrices)};
}

Parameters StageParameters::of_blocks(const StageLayers& layers) const {
  Parameters sum;
  for (const BlockRun& run : layers) sum += run.count * block[run.kind];
  return sum;
}

double StageParameters::count_of_last(const StageLayers& layers, std::int32_t blocks) const {
  std::int32_t others = layers.count() - blocks;
  double sum = 0;
  for (const BlockRun& run : layers) {
    const std::int32_t counted = run.count - std::clamp(others, 0, run.count);
    sum += counted * block[run.kind].count;
    others -= run.count;
  }
  return sum;
}

Parameters StageParameters::of_stage(std::span<const StageLayers> layers, std::size_t stage) const {
  const bool first = stage == 0, last = stage + 1 == layers.size();
  Parameters sum = of_blocks(layers[stage]);
  if (first) sum += embedding;
  if (last) sum += of_head(first);
  return sum;
}

StageParameters stage_parameters(const ModelSpec& model, const PrecisionPolicy& policy, std::int32_t tensor) {
  const auto end = [&](double count) {
    return Parameters{count, 0, Bytes(bytes_per_element(policy.ends) * count), Bytes(0)};
  };
  StageParameters p;
  for (std::size_t kind = 0; kind < block_kinds(model).size(); ++kind)
    p.block[kind] = block_parameters(model, policy, kind, tensor);
  p.embedding = end(embedding_parameters(model, tensor));
  p.final_norm = end(model.final_norm_parameters());
  p.head = end(head_parameters(model, tensor));
  p.tied = model.tied_embeddings;
  return p;
}

}  // namespace shardscape::model
