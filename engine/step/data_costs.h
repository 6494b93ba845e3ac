// What data parallelism costs the stages of a healthy machine, and what plans share of it: it depends on the degrees
// of the plan, the order of its ranks, the ZeRO stage and the layers of the stage, but not on the microbatch, not on
// what is recomputed, and of the schedule only on whether it puts weight gradients off or runs both ways.
#pragma once

#include <optional>
#include <vector>

#include "engine/network/collective_model.h"
#include "engine/step/data_exposure.h"
#include "engine/step/data_traffic.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

/// What the end of a stage's step consists of, before anything hides it.
struct TailCosts {
  GradientTraffic gradients;  ///< empty: none are left for the end
  WeightGather weights;
  Seconds optimizer;
};

/// What goes beside the passes of one microbatch, before they hide any of it.
struct BesideCosts {
  Seconds forward, backward, weight;  ///< beside each pass
};

/// The same as contended_share() sees it.
struct ContendedData {
  struct Sent {
    DataTraffic::Part part;
    Seconds time;
    std::optional<Seconds> on_links = {};     ///< of that time, once asked for
    const network::LinkSet* links = nullptr;  ///< tile_links(), once asked for
  };
  struct Traffic {
    Seconds time;
    Seconds siblings;  ///< of it what is due to the groups of other stages
    std::vector<Sent> sent;
  };
  Traffic beside;  ///< the passes of every microbatch
  Traffic once;    ///< in a step
};

/// Of a stage; each part is filled when it is first asked for.
struct DataCosts {
  std::optional<TailCosts> tail;
  std::optional<BesideCosts> beside;
  std::optional<ContendedData> contended;
};

/// Of the stages of some plans.
class StageDataCosts {
 public:
  /// Valid until the next call.
  DataCosts& of(const TrainingStep& inputs, std::int32_t stage);
  void forget() { known_.clear(); }

 private:
  struct Known {
    model::StageLayers layers;
    bool first = false, last = false;
    DataCosts costs;
  };
  std::vector<Known> known_;
};

/// Exact: costs are shared only by plans that agree in everything that they depend on. For one setting on one healthy
/// machine. Bounded: of plans with the same place in the table the last one is remembered.
class DataCostsMemo {
 public:
  /// Valid until the next call.
  StageDataCosts& of(const TrainingStep& inputs);

 private:
  struct Slot {
    ParallelPlan plan;  ///< with what the costs do not mind set idle
    bool used = false;
    StageDataCosts costs;
  };
  std::vector<Slot> slots_;
};

}  // namespace shardscape::step
