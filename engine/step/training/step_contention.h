// What contention (contention.h) does to a step whose stages have been timed.
#pragma once

#include "engine/spec/prediction.h"
#include "engine/step/training/contention.h"
#include "engine/step/training/step_times.h"

namespace shardscape::step {

/// The share of a step by which turns of siblings (sibling_turns.h) may be wrong.
double open_in_turns(const TrainingStep& inputs, const StepTimes& times, Seconds step);

/// The share of a step by which messages between stages may make it longer because they meet: a message leaves its
/// stage before the next one does, unless it takes longer than the pass between them. Then both may take twice as long.
double open_in_messages(const TrainingStep& inputs, const StepTimes& times, std::size_t stage, Seconds step);

/// The times of the stage that ends last, on a healthy machine. `busy`: of all its passes. `waiting`: for the others.
TimedStage timed_stage(const TrainingStep& inputs, const StepTimes& times, std::size_t stage, Seconds step,
                       const PassTime& busy, Seconds waiting);

/// Adds contention to the step, from which siblings that take turns have taken `spared` already. It may be less with a
/// sick device, whose longer attention core hides more of an exchange, but the step is never shorter than `at_least`;
/// what lacks counts as waiting for the host.
void add_contention(Breakdown contended, Seconds spared, Seconds at_least, StepPrediction& prediction);

/// The contention on a machine whose devices are all like this sick one.
Contention contention_on(const SickStage& device, const StepMachine& machine, const TimedStage& stage);

}  // namespace shardscape::step
