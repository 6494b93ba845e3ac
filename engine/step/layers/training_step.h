// What a training step consists of: the layers of its stages and chunks, the parts of their passes, and what crosses
// boundaries.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/memory/memory.h"
#include "engine/spec/deferred_head.h"
#include "engine/step/layers/layer_parts.h"
#include "engine/step/layers/price_layers.h"

namespace shardscape::step {

struct SiblingTurns;  // sibling_turns.h

/// A stage that holds a sick device. Both references must outlive the inputs.
struct SickStage {
  std::size_t stage = 0;
  std::int32_t rank = 0;  ///< number in the plan of the rank on the sick device
  const LayerCosts& costs;
  const Setting& setting;   ///< the setting with the sick device in place of the others
  double memory_share = 1;  ///< share of its memory's rate that the device has left, 0..1
};

/// Consecutive layers of one kind.
struct LayerRun {
  LayerKind kind;
  std::int32_t count = 1;
  friend bool operator==(const LayerRun&, const LayerRun&) = default;
};
using LayerRuns = boost::container::small_vector<LayerRun, 4>;

/// The layers that a stage or a chunk holds.
struct StageContents {
  model::StageLayers layers;
  bool first = false, last = false;  ///< whether it holds the embedding, and the head
  friend bool operator==(const StageContents&, const StageContents&) = default;
};

/// Equal layers one after the other, as a pass runs them.
struct LayerWork {
  LayerKind kind;
  std::int32_t count = 1;
  Pass pass = Pass::forward;  ///< what of them runs
};
/// What a pass runs, in order.
using PassStream = boost::container::small_vector<LayerWork, 4>;

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
  [[nodiscard]] StageContents contents(std::int32_t stage) const {
    return {layers[static_cast<std::size_t>(stage)], first(stage), last(stage)};
  }
  [[nodiscard]] StageContents contents(std::int32_t stage, std::int32_t chunk) const {
    const std::int32_t part = pipeline.part(stage, chunk);
    return {chunks[static_cast<std::size_t>(stage * pipeline.virtual_stages + chunk)], part == 0,
            part + 1 == pipeline.parts()};
  }
  /// The layers of a stage, and of one of its chunks, in the order of forward.
  [[nodiscard]] LayerRuns stage_layers(std::int32_t stage) const;
  [[nodiscard]] LayerRuns chunk_layers(std::int32_t stage, std::int32_t chunk) const;
  /// Whether the schedule defers gradients of weights, and whether it does for layers of this kind.
  [[nodiscard]] bool cuts() const { return pipeline.cuts(); }
  [[nodiscard]] bool cuts(LayerKind kind) const { return cuts() && kind.is_block(); }
  /// Whether some backwards of a layer defer them, running as Pass::input, and others do not.
  [[nodiscard]] bool splits(LayerKind kind) const { return pipeline.both_ways() && kind.is_block(); }
  /// The schedule as a layer sees it, which only notices whether weight gradients run apart from their backward.
  [[nodiscard]] ScheduleKind schedule_of_layers() const {
    return cuts() || pipeline.both_ways() ? pipeline.kind : kPlainSchedule;
  }
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
  /// What a pass through these layers runs, in order; layers that have nothing to do in it are left out. `defers`: of a
  /// microbatch that puts the head's weight gradient off.
  [[nodiscard]] PassStream stream(const LayerRuns& runs, Pass pass, bool defers) const;
  /// Calls visit(run, pass, part) for each part of all passes of every microbatch through these layers.
  template <class Visit>
  void each_part(const LayerRuns& runs, const Visit& visit) const {
    for (const LayerRun& run : runs)
      for (const Pass pass : kTrainingPasses)
        for (const Segment& segment : segments(run.kind, pass))
          visit(run, pass, costs[run.kind][segment.part]);
  }
  /// The parameters that one rank of the stage holds, before ZeRO shards them.
  [[nodiscard]] model::ParameterGroups parameters_of(std::int32_t stage) const;
  [[nodiscard]] Boundary boundary() const;
};

}  // namespace shardscape::step
