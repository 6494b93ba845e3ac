// The program of a predicted training step: operators, collectives and messages of each stage, for timelines
// and execution traces.
#pragma once

#include "engine/passes/training.h"
#include "engine/timeline/stage_steps.h"

namespace shardscape::passes {

/// Of the step that time_training() timed last with `scratch`. Durations are those it used; what the stack
/// hides is hidden under the compute before it, ring exchanges of context parallelism under the attention.
timeline::StepProgram make_step_program(const TrainingInputs& inputs, network::CollectiveModel& collectives,
                                        const TrainingScratch& scratch);

}  // namespace shardscape::passes
