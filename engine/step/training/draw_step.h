// What charts, timelines and traces of a training step are made from: its schedule as it was priced, and the programs
// of its ranks (emit_training.h), which flattened mode executes.
#pragma once

#include <memory>
#include <string>

#include "engine/step/training/flattened.h"
#include "engine/step/training/step_times.h"
#include "engine/timeline/timed_step.h"

namespace shardscape::step {

/// The schedule with the times of all stages (TrainingScratch::options).
timeline::TimedStep timed_step(const TrainingStep& inputs, const StepTimes& times);

/// The programs of all ranks, not executed; null where dead links cut off ranks that have to talk. `drawn`, where
/// given, gets the timeline of the step with the operators of one rank of each stage.
std::shared_ptr<const execution::Programs> emit_step(const TrainingStep& inputs,
                                                     const network::CollectivePrices& collectives,
                                                     const FlattenedRun& run, const timeline::TimedStep& step,
                                                     std::string* drawn);

}  // namespace shardscape::step
