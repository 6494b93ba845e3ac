#include "engine/step/training/data_costs.h"

#include <algorithm>

namespace shardscape::step {

DataCosts& StageDataCosts::costs_of_stage(const TrainingStep& in, std::int32_t stage) {
  const StageContents contents = in.contents(stage);
  const auto found = std::ranges::find(known_, contents, &Known::stage);
  if (found != known_.end()) return found->costs;
  known_.push_back({contents, {}});
  return known_.back().costs;
}

}  // namespace shardscape::step
