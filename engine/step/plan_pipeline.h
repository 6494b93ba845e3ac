// Determines the pipeline that a plan runs: its schedule, and whether its passes run in pairs.
#pragma once

#include <optional>

#include "engine/model/partition.h"
#include "engine/schedule/pipeline.h"
#include "engine/spec/plan.h"
#include "engine/spec/scenario.h"

namespace shardscape::step {

/// The pipeline of a plan whose microbatches divide the batch. On one stage there is no bubble to fill: zero_bubble and
/// dualpipe are plain accumulation.
schedule::PipelineShape pipeline_shape(const Setting& setting, const ParallelPlan& plan);

/// The layers of its stages and chunks; nothing where the stack's rule cannot be met (model::partition_layers).
std::optional<model::Partition> training_partition(const Setting& setting, const ParallelPlan& plan);

/// Whether forwards and backwards of this plan run in pairs, beside those of dualpipe: where the stack overlaps the
/// exchanges of experts, tokens are dispatched, the schedule is interleaved or has one stage and no traffic of data
/// parallelism runs beside every microbatch.
bool overlaps_exchanges(const Setting& setting, const ParallelPlan& plan);
/// Whether the order of ranks decides if passes run in pairs: it decides which groups of experts leave a domain.
bool order_decides_pairs(const StackProfile& stack);

}  // namespace shardscape::step
