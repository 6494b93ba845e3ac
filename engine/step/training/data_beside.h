// Data-parallel traffic beside the passes of every microbatch (ZeRO-2 and 3): how much of it passes of stages and of
// their chunks expose. A chunk has an equal share of its stage's traffic beside it, as it is executed, and hides it by
// its own length (beside_pass() in price_training.h).
#pragma once

#include "engine/step/training/price_training.h"

namespace shardscape::step {

/// What a stage sends beside its passes.
BesideCosts beside_costs(const StepMachine& machine, std::size_t stage);

/// Adds to the passes of each stage what data parallelism costs every microbatch.
void add_data_parallel(const StepMachine& machine, TrainingScratch& scratch);

}  // namespace shardscape::step
