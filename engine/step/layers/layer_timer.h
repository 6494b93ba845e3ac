// Times what a microbatch takes through a layer: device, exposed communication and host, forward and backward apart.
#pragma once

#include <optional>
#include <vector>

#include "engine/base/memo.h"
#include "engine/step/layers/call_prices.h"
#include "engine/step/layers/layer_times.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

/// Whether the host can't launch a pass through such a layer ahead of the one before it: it reads how many tokens the
/// experts got (model::Operator::wait).
bool meets_host(const TrainingStep& inputs, LayerKind kind, Pass pass);

/// Times the layers of a stage. Inputs and costs must outlive it.
class LayerTimer {
 public:
  /// Without `prices`, calls take no time.
  LayerTimer(const TrainingStep& inputs, const LayerCosts& costs, std::optional<CallPrices> prices)
      : in_(inputs), costs_(costs), prices_(prices) {}

  /// The time of a pass through one layer; the device waits where the host launches more slowly than it computes.
  [[nodiscard]] PassTime operator()(LayerKind kind, Pass pass) const;
  [[nodiscard]] PassTime segments_time(LayerKind kind, const Segments& segments) const;
  /// Seconds that the calls of a pass take less than one after the other, because ranks of a context group drift apart
  /// (context_drift.h).
  [[nodiscard]] Seconds spared(LayerKind kind, const Segments& segments) const;
  /// Seconds of the calls of ranks that split an expert, which count as exchanges of experts but hide beside nothing.
  [[nodiscard]] Seconds split_experts(LayerKind kind, const Segments& segments) const;
  /// The piece_times() of each segment.
  [[nodiscard]] std::vector<std::vector<Seconds>> pieces(LayerKind kind, const Segments& segments) const;

 private:
  /// Adds the time of a segment on the device. Returns for how long the passes of the context group, one after the
  /// other, keep their links busy.
  Seconds add_device(const LayerCost& layer, const Segment& segment, PassTime& time) const;
  /// Adds the time of a pass on the device. Returns spared().
  Seconds add_drifting(LayerKind kind, const Segments& segments, PassTime& time) const;
  /// Seconds spared by drift in one part; for a whole pass the sum is too much where links are busy for longer.
  [[nodiscard]] Seconds spared_of(const PartCost& part) const;
  /// spared_by_drift(), asked once for each of the few different calls.
  [[nodiscard]] Seconds spared_by(const model::CollectiveCall& call) const;

  /// Times the calls of a part, which may overlap with work of the part under faults.
  [[nodiscard]] EnumArray<ParallelGroup, Seconds> price_calls(const PartCost& part) const;
  /// Seconds of a part's work that hide no call yet, before each call in turn; their mean where there are more calls
  /// than a row tells apart. Behind an exchange of experts between all members of the group they begin together. What
  /// scatters goes through the stages backwards.
  [[nodiscard]] network::Gaps work_between(const PartCost& part, ParallelGroup group) const;
  /// CallPrices::priced(); asks once for each of the few different calls that the passes of a stage make.
  [[nodiscard]] network::CollectivePrices::Priced priced(const model::CollectiveCall& call) const;
  /// CollectivePrices::saved_in_row() of a call that was priced; asks once for equal calls of a part.
  [[nodiscard]] Seconds saved_in_row(const model::CollectiveCall& call, const network::Gaps& work) const;

  const TrainingStep& in_;
  const LayerCosts& costs_;
  std::optional<CallPrices> prices_;
  /// All of a call that its price depends on, beside the prices; what drift spares of it depends on the repeats, too.
  struct CallKey {
    network::CollectiveOp op = network::CollectiveOp::all_reduce;
    ParallelGroup group = ParallelGroup::tensor;
    Bytes bytes;
    double repeats = 1;
    friend bool operator==(const CallKey&, const CallKey&) = default;
  };
  struct KnownCall {
    network::CollectivePrices::Priced priced;
    network::Gaps work = {};  ///< between calls of the row that was asked for last; empty: none was
    Seconds saved = {};       ///< by one of them
  };
  /// Not used on the plain path, which asks for each call.
  mutable ShortMemo<CallKey, KnownCall, 8> known_;
  mutable ShortMemo<CallKey, Seconds, 4> drift_;
};

/// Times a pass through a layer that consists of these segments, on the healthy machine; without `collectives`, calls
/// cost only what the host needs to launch them. Reads only setting, plan and costs of `inputs`.
PassTime time_segments(const TrainingStep& inputs, LayerKind kind, const Segments& segments,
                       const network::RankGroups& groups, const network::CollectivePrices* collectives);

}  // namespace shardscape::step
