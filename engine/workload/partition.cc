#include "engine/workload/partition.h"

#include <algorithm>

namespace shardscape::workload {

namespace {

/// Chunk c lies on stage c % stages.
void partition_balanced(const ModelSpec& model, std::int32_t virtual_stages,
                        std::vector<std::int32_t>& layers) {
  const double block = model.block_matrix_parameters();
  const double head = static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden);
  const std::size_t chunks = layers.size() * static_cast<std::size_t>(virtual_stages);
  const double share = (static_cast<double>(model.layers) * block + head) / static_cast<double>(chunks);
  std::size_t chunk = 0;
  double cost = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    // A block that starts beyond the chunk's share goes to the next chunk; the one that crosses the border
    // stays.
    while (chunk + 1 < chunks && cost >= share * static_cast<double>(chunk + 1)) ++chunk;
    ++layers[chunk % layers.size()];
    cost += block;
  }
}

}  // namespace

bool partition_layers(const ModelSpec& model, PartitionRule rule, std::int32_t stages,
                      std::int32_t virtual_stages, std::vector<std::int32_t>& layers) {
  layers.assign(static_cast<std::size_t>(stages), 0);
  const bool even = model.layers % (static_cast<std::int64_t>(stages) * virtual_stages) == 0;
  if (rule == PartitionRule::balanced && !(even && virtual_stages > 1)) {
    partition_balanced(model, virtual_stages, layers);
    return true;
  }
  if (!even) return false;
  std::ranges::fill(layers, static_cast<std::int32_t>(model.layers / stages));
  return true;
}

}  // namespace shardscape::workload
