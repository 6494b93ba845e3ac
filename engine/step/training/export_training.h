// The program of a predicted training step: operators, collectives and messages of each stage, for timelines
// and execution traces.
#pragma once

#include "engine/step/training/price_training.h"
#include "engine/timeline/stage_steps.h"

namespace shardscape::step {

/// Makes the program of the step that time_training() timed last with `scratch`. Durations, and what of them is hidden,
/// waited for or lost, are those it found. What the stack hides lies under the compute before it, and ring exchanges of
/// context parallelism under the attention.
timeline::PricedStep make_priced_step(const TrainingStep& inputs,
                                      const network::CollectivePrices& collectives,
                                      const TrainingScratch& scratch);

}  // namespace shardscape::step
