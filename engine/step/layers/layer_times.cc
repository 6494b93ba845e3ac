#include "engine/step/layers/layer_times.h"

#include "engine/base/hash.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

namespace {

// A power of two, enough for the plans of one choice of degrees in large studies; takes some megabytes in all.
constexpr std::size_t kLayerSlots = 512;

/// The plan with every choice that its layers do not depend on set to a fixed value.
ParallelPlan plan_of_layers(const TrainingStep& in) {
  ParallelPlan plan = in.plan;
  plan.zero_stage = 0;
  plan.virtual_stages = 1;
  plan.schedule = in.schedule_of_layers();
  return plan;
}

}  // namespace

std::uint64_t hash_of(const ParallelPlan& plan) {
  std::int64_t order = 0;
  for (const PlanAxis axis : plan.order) order = 8 * order + static_cast<std::int64_t>(axis);
  const std::array<std::int64_t, 12> words = {plan.tensor,
                                              plan.context,
                                              plan.data,
                                              plan.pipeline,
                                              plan.sequence_parallel,
                                              static_cast<std::int64_t>(plan.recompute),
                                              plan.microbatch,
                                              plan.zero_stage,
                                              static_cast<std::int64_t>(plan.schedule),
                                              order,
                                              plan.expert,
                                              plan.expert_tensor};
  return hash_words(words);
}

LayerTimes& LayerTimesMemo::times_for(const TrainingStep& in) {
  slots_.resize(kLayerSlots);
  const ParallelPlan plan = plan_of_layers(in);
  const bool defers = in.deferred() > 0;
  Slot& slot = slots_[hash_of(plan) % kLayerSlots];
  if (slot.used && slot.defers == defers && slot.plan == plan) return slot.times;
  slot.plan = plan;
  slot.defers = defers;
  slot.used = true;
  slot.times.id = next_id();
  slot.times.forget();
  return slot.times;
}

}  // namespace shardscape::step
