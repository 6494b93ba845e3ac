// What the step of a plan on a healthy machine tells of the same plan with sick links or devices.
//
// A part of a step (the passes of a stage, the traffic beside them, what a stage does at the end, the messages between
// stages) takes what it took before unless it sends over a sick link, shares links with what does, or runs on a sick
// device. So the healthy step is kept, with the links that each of its parts minds (CollectiveModel::record_links()),
// and only those parts are priced again that faults touch; the pipeline runs again where one of its times may differ.
// Exact, to the bit: a part that no fault touches asks for the same prices and gets the same.
//
// Not for links that are gone: their traffic moves to links that nobody recorded.
//
// Plans that share their layers' times on the healthy machine (layer_times.h) share those of a touched stage under the
// same faults as well.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/network/collective_model.h"
#include "engine/step/data_costs.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

struct KnownStep {
  ParallelPlan plan;
  network::RankGroups groups;
  std::uint64_t layers_id = 0;  ///< LayerTimes::id of its layers
  StageTimes layers;            ///< without what data parallelism sends beside passes
  StageTimes passes;            ///< with it
  schedule::Transfer transfer;
  std::vector<double> end, end_without_transfers, chunk_end;  ///< as in TrainingScratch
  std::vector<TailCosts> tails;

  /// That a stage minds.
  struct Links {
    network::LinkSet passes, beside, tail;
  };
  std::vector<Links> links;
  network::LinkSet boundaries;
};

/// Which parts of a step have to be priced.
class PartsToPrice {
 public:
  /// All of them, or those that faults touch of a step that is `known`, perhaps null.
  void find(const TrainingStep& inputs, const network::CollectiveModel& collectives, const KnownStep* known);

  /// The step that the others are read from, or null.
  [[nodiscard]] const KnownStep* known() const { return known_; }
  [[nodiscard]] bool passes(std::size_t stage) const { return stages_[stage].passes; }
  /// What data parallelism sends beside the passes, or they themselves.
  [[nodiscard]] bool beside(std::size_t stage) const { return stages_[stage].beside; }
  [[nodiscard]] bool tail(std::size_t stage) const { return stages_[stage].tail; }
  /// The messages between stages, which wait for the slowest memory of all.
  [[nodiscard]] bool boundaries() const { return boundaries_; }
  /// Whether the pipeline may take another time.
  [[nodiscard]] bool pipeline() const { return pipeline_; }

 private:
  struct Stage {
    bool passes = true, beside = true, tail = true;
  };
  const KnownStep* known_ = nullptr;
  std::vector<Stage> stages_;
  bool boundaries_ = true, pipeline_ = true;
};

/// The passes of stages, and of their chunks, that sick links touch. Exact: they are those of the same layers of the
/// same plans (but for what layers do not mind) under the same faults. Bounded: of questions with the same place the
/// last one is remembered.
class SickPassesMemo {
 public:
  static constexpr std::int32_t kWhole = -1;
  struct Key {
    std::uint64_t layers_id = 0;  ///< LayerTimes::id
    std::uint64_t faults = 0;     ///< CollectiveModel::fault_epoch()
    std::int32_t stage = 0, deferred = 0;
    std::int32_t chunk = kWhole, virtual_stages = 1;  ///< kWhole: all of the stage
    bool overlaps = false;
    model::StageLayers layers;
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// The passes, or where to put them; valid until the next call.
  struct Place {
    StagePasses& passes;
    bool known = false;
  };
  Place of(const Key& key);
  /// Times of the layers of the stage, whole or in chunks. Valid until the next call.
  LayerTimes& layers(const Key& key);

 private:
  struct Slot {
    Key key;
    StagePasses passes;
  };
  std::vector<Slot> slots_;
  struct Stage {
    std::array<std::int64_t, 3> key = {};  ///< LayerTimes::id, faults, stage
    LayerTimes layers;
  };
  std::vector<Stage> stages_;
};

/// Prepares the scratch for a step: for one whose links are recorded, which will be known then; else for the parts
/// that it says have to be priced. Gives back the known step that all others are taken from, already in the scratch,
/// or null.
const KnownStep* begin_step(const TrainingStep& inputs, const network::PlanLayout& layout,
                            const network::CollectiveModel& collectives, TrainingScratch& scratch);
/// Keeps what a pipeline has come to.
void keep_pipeline(TrainingScratch& scratch);

}  // namespace shardscape::step
