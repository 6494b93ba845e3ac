// Times what a microbatch takes through the layers of a stage: device, exposed communication and host, forward and
// backward apart; and by how much a forward and a backward are shorter as a pair.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <optional>
#include <vector>

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

  /// CallPrices::priced(); asks once for each of the few different calls that the passes of a stage make.
  [[nodiscard]] network::CollectivePrices::Priced priced(const model::CollectiveCall& call) const;

  const TrainingStep& in_;
  const LayerCosts& costs_;
  std::optional<CallPrices> prices_;
  /// All of a call that its price depends on, beside the prices.
  struct CallKey {
    network::CollectiveOp op = network::CollectiveOp::all_reduce;
    ParallelGroup group = ParallelGroup::tensor;
    Bytes bytes;
    friend bool operator==(const CallKey&, const CallKey&) = default;
  };
  struct KnownCall {
    CallKey key;
    network::CollectivePrices::Priced priced;
  };
  mutable boost::container::small_vector<KnownCall, 8> known_;
};

/// Puts together the passes of stages whose layers cost the same. `known`: of these layers. All references must outlive
/// it.
///
/// The host meets the device where a pass begins, launches ahead of layers that take longer to run than to launch, and
/// makes up in them for others: a pass of layers that run for d_i and take h_i to launch takes the longest of
/// h_1 + ... + h_k + d_k+1 + ... + d_n over all k, as it is executed (LayerEmitter::append). In a layer that
/// meets_host() it meets the device again. That is taken to be where the layer begins: between two such points lie the
/// rest of one layer and the beginning of the next, which is as much to run and to launch as one layer. Two passes that
/// run as a pair are launched without a stop.
class StageTimer {
 public:
  StageTimer(const TrainingStep& inputs, const LayerTimer& timer, LayerTimes& known)
      : in_(inputs), timer_(timer), layers_(known.layers) {}

  /// The passes through all of these layers.
  [[nodiscard]] StagePasses passes_through(const LayerRuns& runs);
  /// All weight gradients of the head that the stack defers.
  [[nodiscard]] PassTime deferred();

  /// Seconds by which a forward through some layers and a backward through others are shorter as a pair. Exchanges hide
  /// beside the other pass (paired_passes.h), but a pair takes no less than the host needs to launch it, the layers of
  /// both passes in turn as their exchanges are, whatever of its exchanges hides. A pair takes the longer of both, so
  /// that nothing that takes longer makes it shorter.
  [[nodiscard]] Seconds hidden(const LayerRuns& forward, const LayerRuns& backward);

 private:
  /// The backward of one layer for one microbatch; for the head the mean over microbatches.
  [[nodiscard]] PassTime backward_of(LayerKind kind);
  /// The same where the schedule puts the weight gradients of blocks off in some backwards.
  [[nodiscard]] const PassTime& cut_backward_of(LayerKind kind);
  /// Host time to launch a pass through a layer; for the head the mean over microbatches.
  [[nodiscard]] Seconds launch_of(LayerKind kind, Pass pass) const;
  /// Waits for the host that each layer would have by itself, but that passes through all of the layers do not have.
  struct Spared {
    /// Index: run of layers; `backward` is without weight gradients that all backwards defer, `cut` without those that
    /// some do.
    boost::container::small_vector<Seconds, 4> forward, backward, cut, weight;
  };
  [[nodiscard]] Spared spared(const LayerRuns& runs);
  /// Whether any of the layers would wait for the host by itself.
  [[nodiscard]] bool waits_for_host(const LayerRuns& runs);
  const LayerPasses& timed(LayerKind kind);

  const TrainingStep& in_;
  const LayerTimer& timer_;
  std::array<std::optional<LayerPasses>, kLayerKinds>& layers_;
};

/// Times a pass through a layer that consists of these segments, on the healthy machine; without `collectives`, calls
/// cost only what the host needs to launch them. Reads only setting, plan and costs of `inputs`.
PassTime time_segments(const TrainingStep& inputs, LayerKind kind, const Segments& segments,
                       const network::RankGroups& groups, const network::CollectivePrices* collectives);

}  // namespace shardscape::step
