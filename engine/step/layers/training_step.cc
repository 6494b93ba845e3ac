#include "engine/step/layers/training_step.h"

namespace shardscape::step {

namespace {

LayerRuns runs_of(bool embedding, const model::StageLayers& layers, bool head) {
  LayerRuns runs;
  if (embedding) runs.push_back({kEmbeddingLayer, 1});
  for (const auto& [kind, count] : layers) runs.push_back({block_layer(kind), count});
  if (layers.further() > 0) runs.push_back({kFurtherLayer, layers.further()});
  if (head) runs.push_back({kHeadLayer, 1});
  return runs;
}

}  // namespace

LayerRuns TrainingStep::stage_layers(std::int32_t stage) const {
  return runs_of(first(stage), layers[static_cast<std::size_t>(stage)], last(stage));
}

LayerRuns TrainingStep::chunk_layers(std::int32_t stage, std::int32_t chunk) const {
  const std::int32_t part = pipeline.part(stage, chunk);
  return runs_of(part == 0, chunks[static_cast<std::size_t>(stage * pipeline.virtual_stages + chunk)],
                 part + 1 == pipeline.parts());
}

Segments TrainingStep::segments(LayerKind kind, Pass pass) const {
  const bool part = defers(kind) || splits(kind);
  if (pass == Pass::input && !part) pass = Pass::backward;
  const bool waits = cuts(kind) || (pass == Pass::weight && part);
  return step::segments(pass, kind.is_block() ? plan.recompute : Recompute::none, waits);
}

model::ParameterGroups TrainingStep::parameters_of(std::int32_t stage) const {
  if (!held.empty()) return held[static_cast<std::size_t>(stage)];
  return parameters.of_stage(layers[static_cast<std::size_t>(stage)], first(stage), last(stage));
}

/// Without sequence parallelism all ranks of a tensor group hold the same: each may send its part of it alone
/// (Narayanan et al. 2021, section 4.1, "scatter/gather communication optimization").
Boundary TrainingStep::boundary() const {
  const bool scatter = setting.system.stack.communication.scatter_boundaries && !plan.sequence_parallel;
  if (!scatter || plan.tensor == 1) return {costs.boundary, Bytes(0)};
  return {costs.boundary / plan.tensor, costs.boundary};
}

}  // namespace shardscape::step
