// What the parts of a training step are priced on.
#pragma once

#include <optional>

#include "engine/step/layers/call_prices.h"
#include "engine/step/layers/layer_times.h"
#include "engine/step/training/data_costs.h"

namespace shardscape::step {

struct StepMachine {
  const TrainingStep& in;
  const network::RankGroups& groups;
  const network::CollectivePrices& collectives;
  LayerTimes* shared;                  ///< what plans of the same layers share, or null
  StageDataCosts* data;                ///< what plans of the same data parallelism share, or null
  DataCostsMemo* sick_data = nullptr;  ///< the same where links are sick, or null

  /// The calls of a stage by these prices.
  [[nodiscard]] CallPrices calls_of(std::size_t stage, const network::CollectivePrices& prices) const;
  /// What data parallelism costs a stage, as far as it is known: shared, or in `own`, made empty, where it can't be.
  [[nodiscard]] DataCosts& data_of(std::size_t stage, std::optional<DataCosts>& own) const;
  /// One of these costs, made by `make()` where it is not known.
  template <class Cost, class Make>
  [[nodiscard]] Cost known(std::size_t stage, std::optional<Cost> DataCosts::*cost, const Make& make) const {
    std::optional<DataCosts> own;
    std::optional<Cost>& of_stage = data_of(stage, own).*cost;
    if (!of_stage) of_stage = make();
    return *of_stage;
  }
  /// Whether a stage costs the same as the stage before, as inner stages of equal layers do on healthy links and
  /// devices.
  [[nodiscard]] bool like_the_one_before(std::size_t stage) const;
};

/// Whether links of different stages must be told apart: some are sick, or the links of each stage are recorded.
inline bool told_apart(const network::CollectivePrices& collectives) {
  return collectives.has_faults() || collectives.recorder() != nullptr;
}

/// The part of the machine whose collectives a stage waits for: its own groups. While all links are healthy the groups
/// of all stages cost the same, and the slice names no stage.
network::Slice slice_of(std::size_t stage, const TrainingStep& inputs,
                        const network::CollectivePrices& collectives);

/// The share of its memory bandwidth that the sickest device keeps, 0..1, among the devices of one stage or of all.
double memory_share(const TrainingStep& inputs, std::optional<std::size_t> stage = {});

}  // namespace shardscape::step
