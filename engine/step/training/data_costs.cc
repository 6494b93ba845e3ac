#include "engine/step/training/data_costs.h"

#include <algorithm>

namespace shardscape::step {

DataCosts& StageDataCosts::costs_of_stage(const TrainingStep& in, std::int32_t stage) {
  const model::StageLayers& layers = in.layers[static_cast<std::size_t>(stage)];
  const bool first = in.first(stage), last = in.last(stage);
  const auto found = std::ranges::find_if(known_, [&](const Known& known) {
    return known.first == first && known.last == last && known.layers == layers;
  });
  if (found != known_.end()) return found->costs;
  known_.push_back({layers, first, last, {}});
  return known_.back().costs;
}

}  // namespace shardscape::step
