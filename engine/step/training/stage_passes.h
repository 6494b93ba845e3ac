// The passes of stages and of chunks, as price_training.h adds them up to a step.
#pragma once

#include "engine/step/training/price_training.h"

namespace shardscape::step {

/// Fills the passes of all stages and chunks. `layers`: known times of the layers on healthy devices (where links tell
/// stages apart, those of the first stage).
void fill_passes(const StepMachine& machine, LayerTimes& layers, TrainingScratch& scratch);

/// Copies what a stage takes to the stages after it that are like it.
void copy_to_twins(StepTimes& step);

}  // namespace shardscape::step
