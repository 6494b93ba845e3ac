#include "engine/step/layers/layer_times.h"

namespace shardscape::step {

PlanOnRanks on_ranks(const TrainingStep& in) {
  const ParallelPlan& plan = in.plan;
  return {{plan.tensor, plan.context, plan.data, plan.pipeline},
          plan.order,
          plan.expert,
          plan.expert_tensor,
          plan.sequence_parallel,
          in.schedule_of_layers()};
}

LayersKey layers_key(const TrainingStep& in) {
  return {on_ranks(in), in.plan.microbatch, in.plan.recompute, in.deferred() > 0};
}

LayerTimes& LayerTimesMemo::times_for(const TrainingStep& in) {
  const auto [times, fresh] = known_.at(layers_key(in));
  if (fresh) {
    times.forget();
    times.id = next_id();
  }
  return times;
}

}  // namespace shardscape::step
