// The time of one training step, from layer costs to the breakdown along the critical rank.
//
//   layer    device + exposed TP and CP communication, and what the host needs to launch it, forward and backward apart
//   stage    its layers, the embedding on the first, the head on the last; the host launches ahead within a pass
//            (layer_timer.h)
//   pipeline the schedule over all stages, their chunks and microbatches, every chunk with its own layers; pairs of
//            passes are shorter by the exchanges of experts that one hides beside the other, in the order in which
//            flattened mode runs them (paired_passes.h), every exchange of a pass as long as their mean, but no shorter
//            than the host launches them (layer_timer.h)
//   tail     on the last stage the weight gradients of the head that the stack defers (spec/deferred_head.h);
//            gradients that the last backward does not hide (data_exposure.h), optimizer, and of the weight
//            gather under ZeRO-1 and 2 what the first forward does not hide
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

#include <memory>
#include <optional>
#include <vector>

#include "engine/network/prices/collective_prices.h"
#include "engine/schedule/pipeline_memo.h"
#include "engine/spec/prediction.h"
#include "engine/step/layers/layer_times.h"
#include "engine/step/layers/overlap.h"
#include "engine/step/layers/pass_time.h"
#include "engine/step/layers/price_layers.h"
#include "engine/step/layers/sibling_turns.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

/// Data-parallel traffic of every microbatch beside the passes of a stage, over all its chunks.
struct StageTraffic {
  BesidePass forward, backward, weight;
};

/// What a stage does after its last backward.
struct StageTail {
  Seconds data_comm;          ///< exposed gradient traffic and gather of updated weights, plus `lost`
  Seconds lost;               ///< what compute loses to the parts of this traffic that run beside it
  double weights_hidden = 0;  ///< share of the gather that runs beside the first forward, 0..1
  Seconds optimizer;
  PassTime deferred;  ///< weight gradients of the head; they come first
};

/// Times of one microbatch's passes through one chunk.
struct ChunkPasses {
  PassTime forward, backward;
  Seconds weight;  ///< the part of backward that a schedule may defer
  /// As StageTimes::hidden, for its forward beside the backward of its mate (schedule::mate()).
  Seconds hidden;
  StageTraffic beside;  ///< an equal share of the stage's traffic beside this chunk's passes
};

/// The times of all stages.
struct StageTimes {
  std::vector<PassTime> forward, backward;  ///< index: stage; one microbatch over all chunks
  std::vector<Seconds> weight;              ///< the part of backward that zero_bubble puts off
  std::vector<Seconds> weight_host;         ///< the part of `weight` that waits for the host
  std::vector<StageTraffic> beside;
  /// Index: stage, where each is one chunk. Seconds by which a pair of passes through all chunks is shorter than both
  /// one after the other: the exchanges of experts of each run beside the compute of the other.
  std::vector<Seconds> hidden;
  /// Index: stage * virtual_stages + chunk; empty where each stage is one chunk.
  std::vector<ChunkPasses> chunks;
  std::vector<EndLayers> ends;
  PassTime deferred;  ///< of the last stage: all weight gradients of the head, after its last backward
};

// known_step.h
struct KnownStep;
class PartsToPrice;
class SickPassesMemo;
// data_costs.h
class DataCostsMemo;

/// Scratch memory that is kept from point to point, for one setting on one machine.
struct TrainingScratch : StageTimes {
  TrainingScratch();
  ~TrainingScratch();

  /// Of each stage the first with its times, by chunk too: itself, or one before it. Only that one's are filled, unless
  /// every_tail.
  std::vector<std::size_t> twin;
  std::vector<StageTail> tails;            ///< complete only with every_tail
  std::vector<schedule::StageTime> times;  ///< in the order that schedule::run_in_order() takes
  schedule::Transfer transfer;
  std::vector<double> end, end_without_transfers;  ///< index: stage; end of its last backward
  /// End of the last microbatch's backward, index [stage][chunk]; empty where each stage is one chunk.
  std::vector<double> chunk_end;
  schedule::PipelineMemo pipelines;
  LayerTimesMemo layer_times;
  std::optional<Flops> useful;  ///< model FLOPs of a whole step
  struct {
    Breakdown healthy, added;  ///< of the plan last timed without faults; of whatever was timed last
  } contention;                ///< see contention.h
  /// Of the plan last timed without faults: how siblings take turns, and what its step got shorter by that.
  SiblingTurns turns;
  Seconds spared_in_turn;
  LayerTimes own_times;              ///< of a plan whose layers' times can't be shared
  std::unique_ptr<KnownStep> known;  ///< of the plan that was timed last while links were recorded
  std::unique_ptr<PartsToPrice> parts;
  std::unique_ptr<SickPassesMemo> sick_passes;
  std::unique_ptr<DataCostsMemo> data_costs;
  bool reference =
      false;  ///< walk the schedule operation by operation instead, and share nothing between plans
  bool every_tail = false;  ///< fill the tails of all stages, not only of the one that ends last
  [[nodiscard]] bool is_twin(std::size_t stage) const { return twin[stage] != stage; }
};

/// Fills step_time, the breakdown, tokens_per_s_per_gpu and mfu of `prediction`. Returns the critical
/// stage. Siblings take turns if `inputs.turns` is that of the scratch.
std::int32_t time_training(const TrainingStep& inputs, const network::CollectivePrices& collectives,
                           TrainingScratch& scratch, Prediction& prediction);

/// Fills tokens_per_s_per_gpu and mfu from step_time.
void fill_training_rates(const TrainingStep& inputs, Prediction& prediction);

}  // namespace shardscape::step
