// The program of a predicted training step: operators, collectives and messages of each stage, for timelines
// and execution traces.
#pragma once

#include "engine/step/price_training.h"
#include "engine/timeline/stage_steps.h"

namespace shardscape::step {

/// Of the step that time_training() timed last with `scratch`. Durations are those it used; what the stack
/// hides is hidden under the compute before it, ring exchanges of context parallelism under the attention.
timeline::PricedStep make_priced_step(const TrainingStep& inputs, network::CollectiveModel& collectives,
                                      const TrainingScratch& scratch);

}  // namespace shardscape::step
