#include "sweep/launch/layer_layout.h"

#include <algorithm>

#include "engine/model/partition.h"
#include "engine/spec/pipeline_layout.h"

namespace shardscape::launch {

std::string layer_layout(const Case& of) {
  const ParallelPlan& plan = of.plan;
  if (plan.pipeline == 1 || of.workload().phase != Phase::training) return {};
  if (!of.stack().pipeline_layout.empty()) return of.stack().pipeline_layout;
  const std::int64_t chunks = static_cast<std::int64_t>(plan.pipeline) * plan.virtual_stages;
  const std::int32_t further = model::further_modules(of.shape(), Phase::training);
  model::Partition partition;
  if (!model::partition_layers(of.shape(), of.stack(), {plan.pipeline, plan.virtual_stages, Phase::training},
                               partition))
    return {};
  const auto even = [&](const model::StageLayers& chunk) {
    return chunk.count() * chunks == of.shape().layers;
  };
  if (std::ranges::all_of(partition.chunks, even)) return {};
  PipelineLayout layout;
  layout.stages.resize(static_cast<std::size_t>(chunks));
  for (std::size_t i = 0; i < layout.stages.size(); ++i) {
    // Chunks are listed stage by stage, a layout in the order in which a microbatch meets them.
    const std::size_t stages = static_cast<std::size_t>(plan.pipeline);
    const model::StageLayers& chunk =
        partition.chunks[i % stages * static_cast<std::size_t>(plan.virtual_stages) + i / stages];
    layout.stages[i] = {chunk.count(), chunk.further()};
  }
  if (further > 0 && layout.further() == 0) layout.stages.back().further = further;
  return layout.text();
}

}  // namespace shardscape::launch
