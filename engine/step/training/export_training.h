// The program of a predicted training step: operators, collectives and messages of each stage, for timelines
// and execution traces.
#pragma once

#include "engine/network/prices/collective_prices.h"
#include "engine/step/training/step_times.h"
#include "engine/timeline/stage_steps.h"

namespace shardscape::step {

/// Makes the program of a step with the times of all of its stages (TrainingScratch::options). Durations, and what of
/// them is hidden, waited for or lost, are those it found. What the stack hides lies under the compute before it, and
/// ring exchanges of context parallelism under the attention.
timeline::PricedStep make_priced_step(const TrainingStep& inputs,
                                      const network::CollectivePrices& collectives, const StepTimes& times);

}  // namespace shardscape::step
