#include "engine/step/layers/training_step.h"

#include <algorithm>

namespace shardscape::step {

namespace {

LayerRuns runs_of(const StageContents& of) {
  LayerRuns runs;
  if (of.first) runs.push_back({kEmbeddingLayer, 1});
  for (const auto& [kind, count] : of.layers) runs.push_back({block_layer(kind), count});
  if (of.layers.further() > 0) runs.push_back({kFurtherLayer, of.layers.further()});
  if (of.last) runs.push_back({kHeadLayer, 1});
  return runs;
}

}  // namespace

LayerRuns TrainingStep::stage_layers(std::int32_t stage) const { return runs_of(contents(stage)); }

LayerRuns TrainingStep::chunk_layers(std::int32_t stage, std::int32_t chunk) const {
  return runs_of(contents(stage, chunk));
}

Segments TrainingStep::segments(LayerKind kind, Pass pass) const {
  const bool part = defers(kind) || splits(kind);
  if (pass == Pass::input && !part) pass = Pass::backward;
  const bool waits = cuts(kind) || (pass == Pass::weight && part);
  return step::segments(pass, kind.is_block() ? plan.recompute : Recompute::none, waits);
}

PassStream TrainingStep::stream(const LayerRuns& runs, Pass pass, bool defer) const {
  PassStream stream;
  for (const LayerRun& run : runs) {
    const Pass own = defer && pass == Pass::backward && defers(run.kind) ? Pass::input : pass;
    if (!segments(run.kind, own).empty()) stream.push_back({run.kind, run.count, own});
  }
  if (pass != Pass::forward) std::ranges::reverse(stream);
  return stream;
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
