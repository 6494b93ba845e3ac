// The time of one training step, from layer costs to the breakdown along the critical rank.
//
//   layer    max(device + exposed TP and CP communication, host launch), forward and backward apart
//   stage    its layers, the embedding on the first, the head on the last
//   pipeline the schedule over all stages and microbatches
//   tail     gradients that the last backward does not hide (data_exposure.h), optimizer, weight gather
//            under ZeRO-1 and 2
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
// Left out: the all-reduce of a tied embedding's gradient between first and last stage, drift between
// replicas.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/model/parameters.h"
#include "engine/model/stage_layers.h"
#include "engine/network/collective_model.h"
#include "engine/passes/layer_costs.h"
#include "engine/prediction.h"
#include "engine/schedule/pipeline_memo.h"

namespace shardscape::passes {

/// One direction of one microbatch through a layer or a stage, by class; every second is in exactly one.
struct PassTime {
  Seconds compute, recompute, tensor_comm, context_comm, data_comm, host;

  [[nodiscard]] Seconds total() const {
    return compute + recompute + tensor_comm + context_comm + data_comm + host;
  }
  PassTime& operator+=(const PassTime& o);
  friend PassTime operator*(double n, const PassTime& t);
};

/// A stage that holds a sick device: what its layers cost there. Both references outlive the inputs.
struct SickStage {
  std::size_t stage = 0;
  std::int32_t rank = 0;  ///< of the plan, on the sick device
  const LayerCosts& costs;
  const Setting& setting;  ///< with the sick device
};

/// What the time of a step is made from.
struct TrainingInputs {
  const Setting& setting;
  const ParallelPlan& plan;
  const LayerCosts& costs;
  const std::vector<model::StageLayers>& layers;  ///< per stage
  model::StageParameters parameters;
  schedule::PipelineShape pipeline;
  std::span<const SickStage> sick = {};  ///< any number per stage
};

/// Backward of the layers beside the blocks, one microbatch; 0 where the stage has none.
struct EndLayers {
  Seconds head, embedding;
};

/// What a stage does after its last backward.
struct StageTail {
  Seconds data_comm;  ///< exposed gradient traffic and the gather of updated weights
  Seconds optimizer;
};

/// Scratch that outlives a point.
struct TrainingScratch {
  std::vector<PassTime> forward, backward;  ///< per stage, one microbatch over all its chunks
  std::vector<Seconds> weight;              ///< the part of backward that zero_bubble puts off
  std::vector<EndLayers> ends;
  std::vector<StageTail> tails;
  std::vector<schedule::StageTime> times;  ///< per stage, one microbatch on one chunk
  schedule::Transfer transfer;
  std::vector<double> end, end_without_transfers;  ///< of the last backward, per stage
  /// Of the last microbatch's backward, [stage][chunk]; empty where each stage is one chunk.
  std::vector<double> chunk_end;
  schedule::PipelineMemo pipelines;
  bool reference = false;  ///< walk the schedule operation by operation instead
};

/// Fills step_time, the breakdown, tokens_per_s_per_gpu and mfu of `prediction`. Returns the critical
/// stage.
std::int32_t time_training(const TrainingInputs& inputs, network::CollectiveModel& collectives,
                           TrainingScratch& scratch, Prediction& prediction);

/// Host time of one direction of a layer: its own launches and those of its calls, or what the library's
/// thread needs to serve the calls, whichever is longer.
Seconds pass_launch(const TrainingInputs& inputs, Seconds layer,
                    const std::vector<model::CollectiveCall>& calls);

/// Host time of a block's backward. Of one that is cut (zero_bubble) the host launches both parts in
/// proportion to their kernels; every call goes with the input gradient, and with it all that the library's
/// thread does. A whole one is all in `input`, as is what is computed again before it.
struct BackwardLaunch {
  Seconds input, weight;
};
BackwardLaunch backward_launch(const TrainingInputs& inputs, const LayerCost& layer, Recompute recompute,
                               bool cut);

/// One step of the optimizer.
struct OptimizerCost {
  double parameters = 0;  ///< that the rank owns
  compute::OperatorCost update;
  double slices = 0;  ///< of tensors, that the host cuts under ZeRO-1 and 2
  Seconds slicing;
  [[nodiscard]] Seconds total() const { return update.time + slicing; }
};
/// On a device of a stage.
OptimizerCost optimizer_cost(const TrainingInputs& inputs, const DeviceSpec& device, std::size_t stage);

/// Fills tokens_per_s_per_gpu and mfu from step_time.
void fill_training_rates(const TrainingInputs& inputs, Prediction& prediction);

}  // namespace shardscape::passes
