// The passes of stages and of chunks, as price_training.h adds them up to a step.
//
// Data-parallel traffic beside the passes of every microbatch (ZeRO-2 and 3): a chunk has an equal share of its stage's
// traffic beside it, as it is executed, and hides it by its own length (beside_pass() in overlap.h).
#pragma once

#include "engine/step/training/price_training.h"

namespace shardscape::step {

/// Fills the passes of all stages and chunks. `layers`: known times of the layers on healthy devices (where links tell
/// stages apart, those of the first stage).
void fill_passes(const StepMachine& machine, LayerTimes& layers, TrainingScratch& scratch);

/// Copies what a stage takes to the stages after it that are like it.
void copy_to_twins(StepTimes& step);

/// What a stage sends beside its passes.
BesideCosts beside_costs(const StepMachine& machine, std::size_t stage);

/// Adds to the passes of each stage what data parallelism costs every microbatch.
void add_data_parallel(const StepMachine& machine, TrainingScratch& scratch);

}  // namespace shardscape::step
