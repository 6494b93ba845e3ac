// Data-parallel traffic beside the passes of every microbatch (ZeRO-2 and 3): how much of it passes of stages and of
// their chunks expose. A chunk has an equal share of its stage's traffic beside it, as it is executed, and hides it by
// its own length (beside_pass() in price_training.h).
#pragma once

#include <cstddef>

#include "engine/step/training/data_costs.h"
#include "engine/step/training/price_training.h"

namespace shardscape::step {

/// Copies the times of a stage, except those of its chunks.
void copy_stage(const StageTimes& source, std::size_t from, StageTimes& target, std::size_t to);

/// Adds to the passes of each stage what data parallelism costs every microbatch. `data`: what plans share; null:
/// nothing.
void add_data_parallel(const TrainingStep& inputs, const network::PlanLayout& layout,
                       const network::RankGroups& groups, const network::CollectivePrices& collectives,
                       StageDataCosts* data, TrainingScratch& scratch);

}  // namespace shardscape::step
