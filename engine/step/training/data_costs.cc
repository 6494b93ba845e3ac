#include "engine/step/training/data_costs.h"

#include <algorithm>

#include "engine/base/hash.h"

namespace shardscape::step {

namespace {

// A power of two, enough for the plans of one choice of degrees in large studies; takes some hundred kilobytes in all.
constexpr std::size_t kDataSlots = 128;

/// The plan with every choice that data parallelism does not depend on set to a fixed value.
ParallelPlan plan_of_data(const TrainingStep& in) {
  ParallelPlan plan = in.plan;
  plan.microbatch = 1;
  plan.recompute = Recompute::none;
  plan.virtual_stages = 1;
  plan.schedule = in.schedule_of_layers();
  return plan;
}

}  // namespace

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

StageDataCosts& DataCostsMemo::costs_for(const TrainingStep& in) {
  slots_.resize(kDataSlots);
  const ParallelPlan plan = plan_of_data(in);
  Slot& slot = slots_[hash_of(plan) % kDataSlots];
  if (slot.used && slot.plan == plan) return slot.costs;
  slot.plan = plan;
  slot.used = true;
  slot.costs.forget();
  return slot.costs;
}

}  // namespace shardscape::step
