// The time of one training step, from layer costs to the breakdown along the critical rank.
//
//   layer    device + exposed TP and CP communication, and what the host needs to launch it, forward and backward apart
//   stage    its layers, the embedding on the first, the head on the last; the host launches ahead within a pass
//            (stage_passes.cc)
//   pipeline the schedule over all stages, their chunks and microbatches, every chunk with its own layers; pairs of
//            passes are shorter by the exchanges of experts that one hides beside the other, in the order in which
//            flattened mode runs them (paired_passes.h), every exchange of a pass as long as their mean, but no shorter
//            than the host launches them (stage_passes.cc)
//   tail     on the last stage the weight gradients of the head that the stack defers (spec/deferred_head.h);
//            gradients that the last backward does not hide (data_exposure.h), optimizer, and of the weight
//            gather under ZeRO-1 and 2 what forwards do not hide (overlap.h)
//
// The critical rank is the stage that ends last.
//
// A sick device (throttled memory, a low clock) slows the stage that it sits in: the peers of its tensor and
// context groups wait for it in every layer, so the passes of the whole stage run at its pace. With several
// sick devices each pass of a stage runs at the pace of its slowest. Other replicas wait where gradients are
// exchanged; since one pipeline stands for all replicas, devices that are sick on different stages of
// different replicas count as if they were of the same one: never too short, exact for one sick device.
//
// A sick link slows the stages whose groups, or groups that contend with them, send over it, and the
// boundaries between stages whose messages cross it.
//
// Where only some microbatches of a step defer the head's weight gradient, every backward of the last stage takes the
// mean of all. That leaves the end of a stage that never waits as it is; flattened mode runs each as it is. Its
// calls stay with the backward.
//
// Under dualpipe every part of the model lies on two stages. Gradients are reduced, and ZeRO shards the optimizer, over
// the data-parallel ranks of both; they leave when the last weight gradient of both has run.
//
// Left out: the all-reduce of a tied embedding's gradient between first and last stage, drift between replicas (that
// of ranks within a context group is not: context_drift.h).
#pragma once

#include <optional>

#include "engine/network/prices/collective_prices.h"
#include "engine/schedule/pipeline_memo.h"
#include "engine/spec/prediction.h"
#include "engine/step/layers/training_step.h"
#include "engine/step/training/data_costs.h"
#include "engine/step/training/known_step.h"
#include "engine/step/training/step_machine.h"
#include "engine/step/training/step_times.h"

namespace shardscape::step {

/// What the time of a step on a healthy machine depends on.
struct StepKey {
  LayersKey layers;
  ScheduleKind schedule = kPlainSchedule;
  std::int32_t virtual_stages = 1;
  friend bool operator==(const StepKey&, const StepKey&) = default;
};
/// A step on a healthy machine, as far as anything reads it later.
struct KnownTime {
  StepPrediction out;
  HealthyTimes healthy;
  std::int32_t critical = 0;
};

/// What is remembered from plan to plan, of one setting on one machine.
struct TrainingMemos {
  SlotMemo<StepKey, KnownTime, 512> steps;  ///< of plans that others are timed like
  schedule::PipelineMemo pipelines;
  schedule::OrderedRun orders;  ///< that lay traffic of stages out in time
  LayerTimesMemo layers;
  LayerTimes own_layers;      ///< of a plan whose layers' times can't be shared
  LayerTimes layers_in_turn;  ///< of a plan whose siblings take turns
  LayerTimes stage_layers;    ///< of a stage likewise
  SickLayersMemo sick_layers;
  DataCostsMemo data;
  std::optional<Flops> useful;  ///< model FLOPs of a whole step
};

/// Scratch memory that is kept from point to point, for one setting on one machine.
struct TrainingScratch {
  StepTimes step;      ///< what was timed last
  KnownStep known;     ///< of the plan that was timed last while links were recorded
  PartsToPrice parts;  ///< of the step that is being timed
  TrainingMemos memos;
  struct {
    bool reference =
        false;  ///< walk the schedule operation by operation instead, and share nothing between plans
    bool every_tail = false;  ///< fill the tails of all stages, not only of the one that ends last
  } options;
};

/// Fills the prediction. Returns the critical stage. Siblings take turns if `inputs.turns` is that of the scratch's
/// step.
std::int32_t time_training(const TrainingStep& inputs, const network::CollectivePrices& collectives,
                           TrainingScratch& scratch, StepPrediction& prediction);

/// Fills tokens_per_s_per_gpu and mfu from step_time.
void fill_training_rates(const TrainingStep& inputs, StepPrediction& prediction);

}  // namespace shardscape::step
