#include "engine/workload/partition.h"

#include <algorithm>

namespace shardscape::workload {

namespace {

void partition_balanced(const ModelSpec& model, std::vector<std::int32_t>& layers) {
  const double block = model.block_matrix_parameters();
  const double head = static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden);
  const double share =
      (static_cast<double>(model.layers) * block + head) / static_cast<double>(layers.size());
  std::size_t stage = 0;
  double cost = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    // A block that starts beyond the stage's share goes to the next stage; the one that crosses the border
    // stays.
    while (stage + 1 < layers.size() && cost >= share * static_cast<double>(stage + 1)) ++stage;
    ++layers[stage];
    cost += block;
  }
}

}  // namespace

bool partition_layers(const ModelSpec& model, PartitionRule rule, std::int32_t stages,
                      std::int32_t virtual_stages, std::vector<std::int32_t>& layers) {
  layers.assign(static_cast<std::size_t>(stages), 0);
  if (rule == PartitionRule::balanced && virtual_stages == 1) {
    partition_balanced(model, layers);
    return true;
  }
  if (model.layers % (static_cast<std::int64_t>(stages) * virtual_stages) != 0) return false;
  std::ranges::fill(layers, static_cast<std::int32_t>(model.layers / stages));
  return true;
}

}  // namespace shardscape::workload
