#include "engine/model/parameters.h"

#include "engine/model/block.h"
#include "engine/model/embedding.h"
#include "engine/model/head.h"

namespace shardscape::model {

Parameters StageParameters::of_blocks(const StageLayers& layers) const {
  Parameters sum;
  for (const BlockRun& run : layers) {
    sum.count += run.count * block[run.kind].count;
    sum.tensors += run.count * block[run.kind].tensors;
  }
  return sum;
}

double StageParameters::of_stage(std::span<const StageLayers> layers, std::size_t stage) const {
  const bool first = stage == 0, last = stage + 1 == layers.size();
  return of_blocks(layers[stage]).count + (first ? embedding : 0) + (last ? of_head(first) : 0);
}

StageParameters stage_parameters(const ModelSpec& model, std::int32_t tensor) {
  StageParameters p;
  for (std::size_t kind = 0; kind < block_kinds(model).size(); ++kind)
    p.block[kind] = block_parameters(model, kind, tensor);
  p.embedding = embedding_parameters(model, tensor);
  p.final_norm = model.final_norm_parameters();
  p.head = head_parameters(model, tensor);
  p.tied = model.tied_embeddings;
  return p;
}

}  // namespace shardscape::model
