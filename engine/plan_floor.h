// Floors: times that no plan of a kind beats, whatever its axes that are still open. They are what search prunes by.
//
//   layers    for every layer its passes without, or with, the calls that they expose (step/training/price_training.h
//             prices both)
//   step      the longest chain of operations that a schedule forces, of passes of those lengths
//
// Why nothing is faster. step_time = max over stages of (end of the last backward + tail) + the stack's fixed time,
// tails and fixed times >= 0, so the end of any chain of operations that wait for each other is a floor. Let stage s
// take F_s and B_s for a microbatch over all of its v chunks, and f_s and b_s over the first of them
// (engine/schedule/pipeline.h).
//
//   one way   The first operation of stage s waits for the forwards of the first chunks of all stages before it. The
//             stage then runs m F_s + m B_s one after the other, and its last operation is the backward of a first
//             chunk, which those of all stages before it wait for:
//                 sum_{j<s} f_j + m (F_s + B_s) + sum_{j<s} b_j
//             With stages and chunks alike the maximum is what pipeline.h says of gpipe, 1f1b and interleaved: m (F +
//             B) and a bubble of (p - 1) (F + B) / v.
//   cut       zero_bubble hands on input gradients, I = B - W. Before its last one stage s has run the weight gradients
//             of all but the last s + 1 microbatches, and stage 0 ends with one:
//                 sum_{j<s} F_j + m (F_s + I_s) + max(0, m - 1 - s) W_s + sum_{j<s} I_j + W_0
//             or, without what follows on other stages, sum_{j<s} F_j + m (F_s + I_s + W_s).
//   deferred  What the head puts off leaves the chain through the last stage, but not the stage: it runs in its tail.
//             The two parts of a backward that is cut take no less than the whole one (their device times add up to
//             it, and so do their launches).
//   two ways  Of dualpipe only that a stage works: m / 2 (F_s + B_s) over both chunks.
//
// Calls take no less than on links of their own: other stages take turns with them (step/layers/sibling_turns.h).
//
// The host launches ahead of layers that take long, and makes up for it in others: a pass takes no less than its layers
// run, and no less than they take to launch.
//
// Where passes run in pairs, these are shorter by what one hides of the other's exchanges of experts, at most the share
// of them that the stack overlaps, less what compute loses beside them (step/layers/paired_passes.h): in place of F and
// B the floors then have what is left without that and without waiting for the host.
//
//   optimizer A stage ends with its optimizer (step/training/stage_tails.h: end of the last backward + wait + exposed
//             traffic + optimizer). A chain through stage 0 is followed by that of stage 0, what a stage does alone by
//             its own.
//             Sharded it takes no longer, but for the slices of its tensors, which ZeRO-3 has none of: that of ZeRO-3
//             is a floor of all stages.
//
// What boundaries, data parallelism and the order of ranks (unless calls are asked for) cost is left out: it only adds.
// More recomputation only adds segments to a pass, so floors of a lesser policy hold for a greater one. Property tests
// hold all of it against predictions.
//
// In flattened mode an executed step takes no less than the floors that follow. They add nothing to the floors of the
// hierarchical mode, but lie below those:
//
//   host      the host launches all of a pass, whatever runs beside it: also where passes run in pairs, the chain of
//             launches alone is a floor
//   calls     of a group wait for its last member, so that a rank of each stage that is latest of all pays for each of
//             them. What links of other stages' groups add is left out, as those are mostly at other work, and so is
//             what prices may lie above simulations. Where members of expert groups get unlike loads, the latest one
//             may be another each time: only what the busiest computes is left
//   a point   whose order of ranks is known has a sharper one (executed_floor.cc): the schedule operation by operation
//             in place of the longest chain, and the gradients that its last backward can't hide
//
// read_by_floor() says which parts of a setting a floor reads; settings that agree in these share the floor.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/evaluate/machine.h"
#include "engine/model/partition.h"
#include "engine/schedule/pipeline_memo.h"
#include "engine/step/layers/training_step.h"
#include "engine/step/training/data_traffic.h"

namespace shardscape {

/// Seconds that one microbatch's passes through a layer take at least.
struct LayerFloor {
  double forward = 0, backward = 0;
  double input = 0, weight = 0;  ///< the two parts of a backward that the schedule cuts
};
/// Floors by kind of layer (index: LayerKind::index()).
using LayerFloors = std::array<LayerFloor, step::kLayerKinds>;

/// Floors of the passes of plans with one LayerKey.
struct PassFloors {
  LayerFloors alone;     ///< where every pass runs by itself
  LayerFloors launches;  ///< of the same passes: time that the host takes to launch them
  LayerFloors paired;    ///< where forward and backward passes run in pairs
};

/// Seconds that layers of a stage or of a chunk take at least for one microbatch.
struct StageFloor {
  double forward = 0;
  double handed_on = 0;  ///< part of the backward that the stage before waits for
  double kept_back = 0;  ///< rest of the backward
};
/// Sums the floors of layers, of which the head's backwards put off their weight gradients to this share.
StageFloor sum_of(const step::TrainingStep& inputs, const step::LayerRuns& runs, const LayerFloors& layers,
                  double deferred_share);

/// The kinds of floors that are made from a setting.
enum class FloorKind : std::uint8_t {
  passes,  ///< of passes through layers, without their calls
  calls,   ///< of passes through layers, with their calls
  steps,   ///< of whole steps, from passes without calls
  points   ///< of a plan's executed step, and that executed step itself
};
/// The system and the workload with everything set to a fixed value that floors of the kind do not read: where the
/// results are equal, the floors are equal bit for bit.
System read_by_floor(FloorKind kind, System system);
WorkloadSpec read_by_floor(FloorKind kind, WorkloadSpec workload);

/// Replaces each floor in `kept` by the lesser of the two.
void keep_least(PassFloors& kept, const PassFloors& other);

/// Whether the calls of layers go to the same groups, on the same stages, in two rank orders of a plan.
bool same_layer_groups(ParallelPlan plan, const RankOrder& one, const RankOrder& other);

/// Computes floors of training plans in one setting and mode, without faults. One object per thread.
class PlanFloor {
 public:
  /// `setting` must be valid and outlive the object. `networks`: see SimulateOptions.
  explicit PlanFloor(const Setting& setting, std::shared_ptr<network::SharedNetworks> networks = {},
                     ExecutionMode mode = ExecutionMode::hierarchical);

  /// Floors of the passes of all plans that agree with `plan` in degrees, sequence parallelism, experts, microbatch and
  /// whether tokens are dispatched, and that recompute at least as much.
  [[nodiscard]] PassFloors without_calls(const ParallelPlan& plan);
  /// The same including the calls of the layers, for plans in any of these rank orders.
  [[nodiscard]] PassFloors with_calls(const ParallelPlan& plan, std::span<const RankOrder> orders);

  /// Whether the order of ranks decides over more than the calls: over which exchanges leave a domain, so that passes
  /// run in pairs, which takes memory. Floors of time hold either way.
  [[nodiscard]] bool order_decides_pairs() const;
  /// Whether a plan divides and is supported. Only for such plans are there passes.
  [[nodiscard]] bool possible(const ParallelPlan& plan) const;
  /// Seconds of a step of any plan that differs from `plan` at most in its rank order, a greater ZeRO stage and more
  /// recomputation; infinite where all of them are indivisible or unsupported. `passes`: of it. O(stages).
  [[nodiscard]] double least(const ParallelPlan& plan, const PassFloors& passes);
  /// The same for plans that differ from `plan` at most in rank order and in more recomputation.
  [[nodiscard]] double least_of_stage(const ParallelPlan& plan, const PassFloors& passes);
  /// The same for exactly this plan, where `passes` are of its rank order. In flattened mode it is sharper than the
  /// others, but takes as long to compute as a prediction.
  [[nodiscard]] double of_point(const ParallelPlan& plan, const PassFloors& passes);

  /// The rates of a step of so many seconds: fills tokens_per_s_per_gpu and mfu, both in proportion to 1 / step, and
  /// what tokens take of the devices, in proportion to it.
  [[nodiscard]] Prediction rates(const ParallelPlan& plan, Seconds step);

 private:
  /// What the time of the optimizer on the stages of a plan depends on, besides the setting.
  struct Sharding {
    model::LayerKey layers;
    std::int32_t pipeline = 1, virtual_stages = 1, data = 1, zero_stage = 0;
    bool both_ways = false;
    friend bool operator==(const Sharding&, const Sharding&) = default;
  };
  const std::optional<model::Partition>& split(const ParallelPlan& plan);
  const step::LayerCosts& costs(const ParallelPlan& plan);
  template <class TimeOf>
  PassFloors floors(const ParallelPlan& plan, const TimeOf& time_of);
  [[nodiscard]] bool executed() const { return mode_ == ExecutionMode::flattened; }
  Seconds alone(const ParallelPlan& plan, network::CollectiveOp op, Bytes bytes,
                const network::RankGroup& group, double calls);
  PassFloors in_order(const ParallelPlan& plan);
  friend class ExecutedFloor;  // executed_floor.cc
  evaluate::Machine& machine();
  double step_floor(const ParallelPlan& plan, const PassFloors& passes, std::int32_t zero_stage);
  /// Seconds that the optimizer takes at least, by stage, under that ZeRO stage.
  const std::vector<double>& optimizers(ParallelPlan plan, std::int32_t zero_stage,
                                        const step::TrainingStep& inputs);

  const Setting& setting_;
  std::shared_ptr<network::SharedNetworks> networks_;
  ExecutionMode mode_;
  std::vector<step::LayerKind> kinds_;
  std::vector<std::pair<model::LayerKey, step::LayerCosts>> costs_;  ///< those priced last
  std::size_t next_cost_ = 0;
  step::ProductMemo products_;
  /// Key: stages, virtual stages, whether it runs both ways.
  std::map<std::array<std::int32_t, 3>, std::optional<model::Partition>> splits_;
  /// Seconds by stage, for what was asked last; neighbouring plans share them.
  SlotMemo<Sharding, std::vector<double>, 64> optimizers_;
  std::unique_ptr<evaluate::Machine> machine_;  ///< made when calls are priced first
  schedule::PipelineMemo pipelines_;
};

}  // namespace shardscape
