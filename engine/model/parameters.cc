#include "engine/model/parameters.h"

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

Parameters ParameterGroups::total() const {
  Parameters sum;
  for (const ParameterGroup& group : groups_) sum += group.held;
  return sum;
}

ParameterGroups& ParameterGroups::operator+=(const ParameterGroups& o) {
  for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i].held += o.groups_[i].held;
  return *this;
}

Parameters weights_of(const PartParameters& part, const PrecisionPolicy& policy) {
  return {part.matrices + part.vectors, part.tensors,
          Bytes(policy.operand_bytes(policy.weights) * part.matrices +
                bytes_per_element(policy.activations) * part.vectors),
          Bytes(policy.weight_copies * policy.operand_bytes(policy.products) * part.matrices)};
}

ParameterGroups StageParameters::of_blocks(const StageLayers& layers) const {
  ParameterGroups sum;
  for (const BlockRun& run : layers) sum += run.count * block[run.kind];
  return sum;
}

double StageParameters::count_of_last(const StageLayers& layers, std::int32_t blocks,
                                      ParallelGroup copies) const {
  std::int32_t others = layers.count() - blocks;
  double sum = 0;
  for (const BlockRun& run : layers) {
    const std::int32_t counted = run.count - std::clamp(others, 0, run.count);
    sum += counted * block[run.kind][copies].count;
    others -= run.count;
  }
  return sum;
}

ParameterGroups StageParameters::of_stage(std::span<const StageLayers> layers, std::size_t stage) const {
  return of_stage(layers[stage], stage == 0, stage + 1 == layers.size());
}

ParameterGroups StageParameters::of_stage(const StageLayers& layers, bool first, bool last) const {
  ParameterGroups sum = of_blocks(layers);
  if (first) sum[ParallelGroup::data_shard] += embedding;
  if (last) sum[ParallelGroup::data_shard] += of_head(first);
  sum += of_further(layers.further(), first || (last && tied));
  return sum;
}

namespace {

/// Parameters of one module that predicts a further token: a layer of the last layer's kind, two norms and the
/// projection of embedding and hidden state, whole on every rank of a tensor group, and a norm ahead of the head.
ParameterGroups further_token(const ModelSpec& model, const PrecisionPolicy& policy, const LayerKey& key) {
  const auto hidden = static_cast<double>(model.hidden);
  const double norms = 3 * model.norm_vectors();
  return block_parameters(model, policy, kind_of_layer(model, model.layers - 1), key) +
         ParameterGroups(ParallelGroup::data_shard,
                         weights_of({2 * hidden * hidden, norms * hidden, 1 + norms}, policy));
}

}  // namespace

StageParameters stage_parameters(const ModelSpec& model, const PrecisionPolicy& policy,
                                 const ParallelPlan& plan, Phase phase) {
  const auto end = [&](double count) {
    return Parameters{count, 0, Bytes(bytes_per_element(policy.ends) * count), Bytes(0)};
  };
  StageParameters p;
  for (std::size_t kind = 0, kinds = block_kinds(model).size(); kind < kinds; ++kind)
    p.block[kind] = block_parameters(model, policy, kind, layer_key(plan, 1));
  p.embedding = end(embedding_parameters(model, plan.tensor));
  p.final_norm = end(model.final_norm_parameters());
  p.head = end(head_parameters(model, plan.tensor));
  p.tied = model.tied_embeddings;
  const std::int64_t modules = phase == Phase::training && model.moe ? model.moe->mtp_layers : 0;
  if (modules == 0) return p;
  p.further = further_token(model, policy, layer_key(plan, 1));
  p.further_table = p.embedding;
  return p;
}

}  // namespace shardscape::model
