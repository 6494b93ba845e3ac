// Keeps the step of a plan on a healthy machine, so that under faults only the parts that these touch are priced again.
//
// A part of a step (the passes of a stage, the traffic beside them, what a stage does at the end, the messages between
// stages) takes what it took before unless it sends over a sick link, shares links with what does, or runs on a sick
// device. So the healthy step is kept with the links that each part depends on (network::LinkRecorder),
// and only those parts are priced again that faults touch; the pipeline runs again where one of its times may differ.
// Exact, to the bit: a part that no fault touches asks for the same prices and gets the same.
//
// Not used for links that are gone, since their traffic moves to links that were not recorded.
//
// Plans that share their layers' times on the healthy machine (layer_times.h) share those of a touched stage under the
// same faults as well.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/network/prices/collective_prices.h"
#include "engine/step/training/data_costs.h"
#include "engine/step/training/sent_in_step.h"
#include "engine/step/training/step_times.h"

namespace shardscape::step {

struct KnownStep {
  ParallelPlan plan;
  network::RankGroups groups;
  /// LayerTimes::id of the layers of this plan; of no others where siblings take turns.
  std::uint64_t layers_id = 0;
  StageTimes layers;  ///< without the data-parallel traffic beside passes
  StageTimes passes;  ///< with the data-parallel traffic beside passes
  PipelineTimes pipeline;
  std::vector<TailCosts> tails;

  /// The links whose faults change a part of a stage's step: its passes, the traffic beside them, and its tail; and
  /// those that its data-parallel traffic crosses.
  struct Links {
    network::LinkSet passes, beside, tail, data;
  };
  std::vector<Links> links;
  network::LinkSet boundaries;
  std::optional<SentInStep> sent;  ///< once asked for
};

/// Tells which parts of a step have to be priced.
class PartsToPrice {
 public:
  /// Marks all parts, or, if a `known` step is given (it may be null), only the parts that faults touch.
  void find(const TrainingStep& in, const network::CollectivePrices& collectives, const KnownStep* known) {
    stages_.assign(static_cast<std::size_t>(in.plan.pipeline), {});
    boundaries_ = pipeline_ = true;
    known_ = known;
    if (known == nullptr) return;
    boundaries_ = pipeline_ = !in.sick.empty() || collectives.touched(known->boundaries);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const bool sick = std::ranges::any_of(in.sick, [&](const SickStage& of) { return of.stage == s; });
      const KnownStep::Links& links = known->links[s];
      Stage& stage = stages_[s];
      stage.passes = sick || collectives.touched(links.passes);
      stage.beside = stage.passes || collectives.touched(links.beside);
      stage.tail = sick || collectives.touched(links.tail);
      stage.data = collectives.touched(links.data);
      pipeline_ = pipeline_ || stage.beside;
    }
  }

  /// The known step that the other parts are read from, or null.
  [[nodiscard]] const KnownStep* known() const { return known_; }
  [[nodiscard]] bool passes(std::size_t stage) const { return stages_[stage].passes; }
  /// Whether the data-parallel traffic beside the passes, or the passes themselves, have to be priced.
  [[nodiscard]] bool beside(std::size_t stage) const { return stages_[stage].beside; }
  [[nodiscard]] bool tail(std::size_t stage) const { return stages_[stage].tail; }
  /// Whether faults touch the links of data-parallel traffic.
  [[nodiscard]] bool data(std::size_t stage) const { return stages_[stage].data; }
  /// Whether the messages between stages have to be priced, whose copies wait for the slowest memory of all devices.
  [[nodiscard]] bool boundaries() const { return boundaries_; }
  /// Whether the pipeline may take another time than the known one.
  [[nodiscard]] bool pipeline() const { return pipeline_; }

 private:
  struct Stage {
    bool passes = true, beside = true, tail = true, data = true;
  };
  const KnownStep* known_ = nullptr;
  std::vector<Stage> stages_;
  bool boundaries_ = true, pipeline_ = true;
};

/// A stage whose links are sick. What its layers and calls take, in whatever chunks, is remembered by this: exact, as
/// the layers of plans that share a LayerTimes::id take the same under the same faults.
struct SickLinksOfStage {
  std::uint64_t layers_id = 0;  ///< LayerTimes::id
  std::uint64_t faults = 0;     ///< CollectivePrices::fault_epoch()
  std::size_t stage = 0;
  friend bool operator==(const SickLinksOfStage&, const SickLinksOfStage&) = default;
};
/// Room for the draws of faults for one choice of degrees; some ten megabytes.
using SickLayersMemo = SlotMemo<SickLinksOfStage, LayerTimes, 8192>;

}  // namespace shardscape::step
