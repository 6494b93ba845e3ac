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

#include <boost/container/small_vector.hpp>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/memory/memory.h"
#include "engine/network/collective_model.h"
#include "engine/prediction.h"
#include "engine/schedule/pipeline_memo.h"
#include "engine/spec/deferred_head.h"
#include "engine/step/layer_times.h"
#include "engine/step/pass_time.h"
#include "engine/step/price_layers.h"
#include "engine/step/sibling_turns.h"

namespace shardscape::step {

/// Data-parallel traffic beside a pass, in seconds.
struct BesidePass {
  Seconds beyond;  ///< traffic that goes on after the pass has ended
  Seconds lost;    ///< what compute loses while the traffic is under way
  [[nodiscard]] Seconds exposed() const { return beyond + lost; }
};
/// Traffic that takes `traffic` seconds, beside a pass of `pass` seconds.
BesidePass beside_pass(const StackProfile::Communication& stack, Seconds traffic, Seconds pass);
/// Seconds that compute loses to traffic that runs beside it for `together` seconds.
Seconds lost_beside(const StackProfile::Communication& stack, Seconds together);

/// Seconds of the gather of updated weights, added up in the order in which its parts are sent.
struct WeightGather {
  Seconds whole;
  Seconds first_bucket;  ///< that the first layer of the next forward waits for
  void add(Seconds time, double calls) {
    if (whole <= Seconds(0)) first_bucket = (1 / calls) * time;
    whole += time;
  }
};
/// How much of the gather the first microbatch's forward hides; never its first bucket.
Seconds hidden_gather(const StackProfile::Communication& stack, const WeightGather& gather, Seconds forward);

/// Seconds of gradient traffic beside compute: all buckets but the last one may lie beside the last backward of the
/// stage's chunks. Traffic that lies in the bubble of a pipeline, or behind other microbatches, costs compute nothing.
Seconds gradients_beside(const StackProfile::Communication& stack, Seconds all_but_last,
                         Seconds last_backward);

/// Seconds that compute loses to traffic of once a step that runs beside it, as its kernels take SMs.
Seconds lost_once(const System& system, Seconds beside);

/// A stage that holds a sick device. Both references must outlive the inputs.
struct SickStage {
  std::size_t stage = 0;
  std::int32_t rank = 0;  ///< number in the plan of the rank on the sick device
  const LayerCosts& costs;
  const Setting& setting;  ///< the setting with the sick device in place of the others
};

/// Consecutive layers of one kind.
struct LayerRun {
  LayerKind kind;
  std::int32_t count = 1;
  friend bool operator==(const LayerRun&, const LayerRun&) = default;
};
using LayerRuns = boost::container::small_vector<LayerRun, 4>;

/// What crosses a boundary between stages for each microbatch, per rank.
struct Boundary {
  Bytes message;   ///< sent to the same rank of the next stage
  Bytes gathered;  ///< in all over the receiver's tensor group, each rank of which received a part; 0: none
};

/// One training step of a plan: what every stage runs, as layers, passes of layers (layer_parts.h) and what surrounds
/// them. Prices, programs, timelines, bytes and tables are all read from it.
struct TrainingStep {
  const Setting& setting;
  const ParallelPlan& plan;
  const LayerCosts& costs;
  const std::vector<model::StageLayers>& layers;  ///< index: stage
  const std::vector<model::StageLayers>& chunks;  ///< index: stage * virtual_stages + chunk
  model::StageParameters parameters;
  schedule::PipelineShape pipeline;
  std::span<const SickStage> sick = {};  ///< any number of sick devices per stage
  /// parameters_of() by stage, if known already; else empty.
  std::span<const model::ParameterGroups> held = {};
  /// How sibling groups of other stages take turns on links, as time_training() finds it in its scratch; null: all of
  /// them send at once.
  const SiblingTurns* turns = nullptr;

  /// Whether a stage holds the embedding, and whether it holds the head: under dualpipe both ends hold both.
  [[nodiscard]] bool first(std::int32_t stage) const { return holds_end(stage, 0); }
  [[nodiscard]] bool last(std::int32_t stage) const { return holds_end(stage, plan.pipeline - 1); }
  [[nodiscard]] bool holds_end(std::int32_t stage, std::int32_t end) const {
    return stage == end || (pipeline.both_ways() && stage == plan.pipeline - 1 - end);
  }
  [[nodiscard]] model::LayerKey key() const { return model::layer_key(plan, plan.microbatch); }
  /// The layers of a stage, and of one of its chunks, in the order of forward.
  [[nodiscard]] LayerRuns stage_layers(std::int32_t stage) const;
  [[nodiscard]] LayerRuns chunk_layers(std::int32_t stage, std::int32_t chunk) const;
  /// Whether the schedule defers gradients of weights, and whether it does for layers of this kind.
  [[nodiscard]] bool cuts() const { return pipeline.kind == ScheduleKind::zero_bubble; }
  [[nodiscard]] bool cuts(LayerKind kind) const { return cuts() && kind.is_block(); }
  /// Whether some backwards of a layer defer them, running as Pass::input, and others do not.
  [[nodiscard]] bool splits(LayerKind kind) const { return pipeline.both_ways() && kind.is_block(); }
  /// Number of microbatches whose weight gradient of the head waits for the last backward of the last stage.
  [[nodiscard]] std::int32_t deferred() const {
    return deferred_heads(plan, setting.system.stack, pipeline.microbatches);
  }
  [[nodiscard]] double deferred_share() const {
    return static_cast<double>(deferred()) / pipeline.microbatches;
  }
  [[nodiscard]] bool defers(LayerKind kind) const { return kind == kHeadLayer && deferred() > 0; }
  /// What a pass through a layer of a kind consists of. Only blocks recompute.
  [[nodiscard]] Segments segments(LayerKind kind, Pass pass) const;
  /// The parameters that one rank of the stage holds, before ZeRO shards them.
  [[nodiscard]] model::ParameterGroups parameters_of(std::int32_t stage) const;
  [[nodiscard]] Boundary boundary() const;
};

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
std::int32_t time_training(const TrainingStep& inputs, network::CollectiveModel& collectives,
                           TrainingScratch& scratch, Prediction& prediction);

/// Host time of a pass through a layer. For each part this is its launches and those of its calls or, if longer, what
/// the library's thread needs to serve the calls. Of a backward that is cut the host launches both parts in proportion
/// to their kernels; every call goes with the input gradient. An attention core that is computed again is launched with
/// the backward that needs it.
Seconds pass_launch(const TrainingStep& inputs, LayerKind kind, Pass pass);

/// Times a pass through a layer that consists of these segments, on the healthy machine; without `collectives`, calls
/// cost only what the host needs to launch them. Reads only setting, plan and costs of `inputs`.
PassTime time_segments(const TrainingStep& inputs, LayerKind kind, const Segments& segments,
                       const network::RankGroups& groups, network::CollectiveModel* collectives);

/// One step of the optimizer.
struct OptimizerCost {
  double parameters = 0;  ///< number of parameters whose state the rank owns
  compute::OperatorCost update;
  double slices = 0;  ///< number of slices of tensors that the host cuts under ZeRO-1 and 2
  Seconds slicing;
  [[nodiscard]] Seconds total() const { return update.time + slicing; }
};
/// The optimizer of a stage on a device of this kind.
OptimizerCost optimizer_cost(const TrainingStep& inputs, const DeviceSpec& device, std::int32_t stage);

/// Fills tokens_per_s_per_gpu and mfu from step_time.
void fill_training_rates(const TrainingStep& inputs, Prediction& prediction);

}  // namespace shardscape::step
