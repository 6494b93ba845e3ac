#include "engine/model/partition.h"

#include <algorithm>

#include "engine/model/block_kinds.h"

namespace shardscape::model {

namespace {

/// Chunk c lies on stage c % stages.
void partition_balanced(const ModelSpec& model, std::int32_t virtual_stages,
                        std::vector<StageLayers>& layers) {
  double blocks = 0;
  for (const BlockRun& run : all_layers(model)) blocks += run.count * product_parameters(model, run.kind);
  const double head = static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden);
  const std::size_t chunks = layers.size() * static_cast<std::size_t>(virtual_stages);
  const double share = (blocks + head) / static_cast<double>(chunks);
  std::size_t chunk = 0;
  double cost = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const std::size_t kind = kind_of_layer(model, layer);
    // A block that starts beyond the chunk's share goes to the next chunk; the one that crosses the border
    // stays.
    while (chunk + 1 < chunks && cost >= share * static_cast<double>(chunk + 1)) ++chunk;
    layers[chunk % layers.size()].add(kind, 1);
    cost += product_parameters(model, kind);
  }
}

/// Chunks of as many layers each, the embedding before and modules of further tokens and the loss behind them counted.
bool partition_with_ends(const ModelSpec& model, std::int32_t virtual_stages,
                         std::vector<StageLayers>& layers) {
  const std::int64_t behind = 1 + (model.moe ? model.moe->mtp_layers : 0), ends = 1 + behind;
  const auto stages = static_cast<std::int64_t>(layers.size()), chunks = stages * virtual_stages;
  if ((model.layers + ends) % chunks != 0) return false;
  const std::int64_t each = (model.layers + ends) / chunks;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t begin = std::max<std::int64_t>(0, chunk * each - 1);
    const std::int64_t end = std::min(model.layers, std::max(begin, (chunk + 1) * each - 1));
    for (const BlockRun& run :
         layers_between(model, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end - begin)))
      layers[static_cast<std::size_t>(chunk % stages)].add(run.kind, run.count);
  }
  return true;
}

}  // namespace

bool partition_layers(const ModelSpec& model, PartitionRule rule, std::int32_t stages,
                      std::int32_t virtual_stages, std::vector<StageLayers>& layers) {
  layers.assign(static_cast<std::size_t>(stages), {});
  const std::int64_t chunks = static_cast<std::int64_t>(stages) * virtual_stages;
  const bool even = model.layers % chunks == 0;
  if (rule == PartitionRule::balanced && !(even && virtual_stages > 1)) {
    partition_balanced(model, virtual_stages, layers);
    return true;
  }
  if (!even && rule == PartitionRule::with_ends) return partition_with_ends(model, virtual_stages, layers);
  if (!even) return false;
  const auto each = static_cast<std::int32_t>(model.layers / chunks);
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
    StageLayers& stage = layers[static_cast<std::size_t>(chunk % stages)];
    for (const BlockRun& run : layers_between(model, chunk * each, each)) stage.add(run.kind, run.count);
  }
  return true;
}

}  // namespace shardscape::model
