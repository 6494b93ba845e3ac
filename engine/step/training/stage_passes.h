// The passes of stages and of chunks, as price_training.h adds them up to a step.
#pragma once

#include "engine/network/prices/collective_prices.h"
#include "engine/step/layers/layer_times.h"
#include "engine/step/training/price_training.h"

namespace shardscape::step {

/// Fills the times of all stages in `scratch`. `known`: times of the layers on healthy devices (where links tell stages
/// apart, those of the first stage).
void fill_stage_times(const TrainingStep& inputs, const network::PlanLayout& layout,
                      const network::RankGroups& groups, const network::CollectivePrices& collectives,
                      LayerTimes& known, TrainingScratch& scratch);

/// Fills the times of chunks, where a stage has several, and makes those of the stages sums over them.
void fill_chunk_times(const TrainingStep& inputs, const network::PlanLayout& layout,
                      const network::RankGroups& groups, const network::CollectivePrices& collectives,
                      LayerTimes& known, TrainingScratch& scratch);

/// Copies what a stage takes to the stages after it that are like it.
void copy_to_twins(const TrainingStep& inputs, TrainingScratch& scratch);

}  // namespace shardscape::step
