// What data parallelism costs the stages of a healthy machine, and what plans share of it: it depends on the degrees
// of the plan, the order of its ranks, the ZeRO stage and the layers of the stage, but not on the microbatch, not on
// what is recomputed, and of the schedule only on whether it puts weight gradients off or runs both ways.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engine/network/prices/collective_prices.h"
#include "engine/spec/zero.h"
#include "engine/step/layers/layer_times.h"
#include "engine/step/layers/training_step.h"
#include "engine/step/training/data_exposure.h"
#include "engine/step/training/data_traffic.h"

namespace shardscape::step {

/// The parts of the end of a stage's step, before anything hides them.
struct TailCosts {
  GradientTraffic gradients;  ///< empty: no gradients are left for the end
  WeightGather weights;
  Seconds optimizer;
};
/// The costs of traffic of which each part takes time(part); without the optimizer.
template <class Time>
TailCosts tail_costs(const DataTraffic& traffic, const Time& time) {
  TailCosts costs;
  for (const DataTraffic::Part& part : traffic.weights()) costs.weights.add(time(part), part.calls);
  for (const DataTraffic::Part& part : traffic.gradients())
    costs.gradients.push_back({part.group, part.calls, time(part)});
  return costs;
}

/// Traffic beside one pass of each microbatch, before that hides any of it.
struct BesideCost {
  Seconds time;
  double calls = 0;
};
using BesideCosts = std::array<BesideCost, std::size(kTrainingPasses)>;  ///< index: Pass

/// The traffic of a stage in the form that contention_of() reads.
struct ContendedData {
  struct Sent {
    DataTraffic::Part part;
    Seconds time, others;                  ///< of the part, and the share of it due to groups of other stages
    Seconds uneven;                        ///< CallPrices::uneven_stages()
    std::optional<Seconds> on_links = {};  ///< the part of `time` on links; filled when first asked for
    std::optional<std::uint32_t> way = {};  ///< its HealthyCosts::way_number(); filled when first asked for
  };
  struct Traffic {
    Seconds time;
    SiblingTimes siblings;  ///< of its groups
    std::vector<Sent> sent;
  };
  Traffic beside;  ///< what every microbatch's passes send
  Traffic once;    ///< what is sent once in a step
};

/// The costs of one stage; each part is filled when it is first asked for.
struct DataCosts {
  std::optional<TailCosts> tail;
  std::optional<BesideCosts> beside;
  std::optional<ContendedData> contended;
  /// gradients_left(); index: whether the head's weight gradients are deferred.
  std::array<std::vector<double>, 2> left;
};

/// The costs of the stages that plans with equal data parallelism have; those of a new one are empty.
using StageDataCosts = ShortMemo<StageContents, DataCosts>;

/// What the costs of data parallelism depend on beside the layers of a stage.
struct DataKey {
  PlanOnRanks plan;
  std::int32_t zero_stage = 0;  ///< timed_zero_stage()
  std::uint64_t faults = 0;     ///< CollectivePrices::fault_epoch()
  std::size_t stage = 0;        ///< where faults tell stages apart
  friend bool operator==(const DataKey&, const DataKey&) = default;
};

/// Remembers costs for one setting on one machine with healthy devices. They are exact, as only plans share them that
/// agree in everything they depend on, and bounded.
class DataCostsMemo {
 public:
  /// Returns the costs for the plan on healthy links. The reference is valid until the next call.
  StageDataCosts& costs_for(const TrainingStep& inputs) { return costs_in(known_, inputs, 0, 0); }
  /// Returns those of a stage under faults of links. The reference is valid until the next call.
  DataCosts& costs_for(const TrainingStep& inputs, std::uint64_t faults, std::size_t stage) {
    const StageContents contents = inputs.contents(static_cast<std::int32_t>(stage));
    return costs_in(sick_, inputs, faults, stage).at(contents).value;
  }

 private:
  template <class Slots>
  static StageDataCosts& costs_in(Slots& slots, const TrainingStep& inputs, std::uint64_t faults,
                                  std::size_t stage) {
    const auto [costs, fresh] = slots.at(
        {on_ranks(inputs), timed_zero_stage(inputs.plan, inputs.setting.system.stack), faults, stage});
    if (fresh) costs.forget();
    return costs;
  }
  /// Enough for the plans of one choice of degrees in large studies; takes some hundred kilobytes in all.
  SlotMemo<DataKey, StageDataCosts, 128> known_;
  /// Room for the draws of faults for one choice of degrees and ZeRO stage; some megabytes.
  SlotMemo<DataKey, StageDataCosts, 2048> sick_;
};

}  // namespace shardscape::step
