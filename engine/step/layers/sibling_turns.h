// For which share of the time groups of other pipeline stages are at calls of the same kind, and what that spares.
//
// Calls of a kind take T a step with all sibling groups sending at once, and T(u) where those of other stages are there
// for a share u of it (network/prices/among_siblings.h). In a step of S seconds they are for u = T(u) / S, and S gets
// shorter by what shows of T - T(u), in the bubble of the pipeline, too: u is what some rounds of both come to.
//
// When data-parallel traffic runs beside passes the schedule says (MetTraffic). Traffic that goes once in a step begins
// when the passes of a stage end: of another stage's as much is there as overlaps if each takes as long as all at once.
//
// Where anything beside passes takes turns, the passes of all stages and the pipeline are priced again with these
// shares (price_training.cc): where the stage that ends last has waited for another, its own calls spare nothing.
#pragma once

#include <span>

#include "engine/spec/plan.h"
#include "engine/step/layers/layer_times.h"

namespace shardscape::step {

/// Times of the stage that ends last.
struct TimedStage {
  std::size_t stage = 0;
  Seconds step;               ///< of the whole step
  Seconds passes;             ///< time of this stage's passes in it, without data-parallel traffic
  Seconds forward, backward;  ///< the parts of `passes` that call: without what zero_bubble puts off
  Seconds forward_host, backward_host;  ///< the parts of `passes` that wait for the host
  double bubble = 0;                    ///< waiting for other stages, relative to `passes`
  Seconds data_tail;                    ///< data-parallel traffic that is left after the passes
  Seconds gather_hidden;                ///< of the gather of updated weights, beside forwards
  Seconds messages;                     ///< to other stages, one after the other
  std::span<const double> transfers;    ///< seconds of one, by boundary; a single entry holds for all
  Seconds messages_shown;        ///< by how much the passes end later because of messages between stages
  Breakdown shown;               ///< of the passes, with data-parallel traffic
  std::span<const double> ends;  ///< seconds at which the passes of each stage end
  std::span<const ChunkPasses> chunks;  ///< of its passes, where there are several
};

/// What a step is spared because groups of other stages do not send all the time.
struct SiblingTurns {
  bool any = false;  ///< whether anything worth looking at is shared; else the rest is 0
  /// Groups of other stages make calls, and traffic beside passes, take longer: for each kind of groups the share of
  /// that which is spared, 0..1.
  EnumArray<ParallelGroup, double> beside;
  EnumArray<ParallelGroup, double> at_end;  ///< the same share, of traffic that goes once in a step
  Seconds once;  ///< spared in the traffic that is left after the passes of the stage that ends last
  Seconds left;  ///< what the step still takes longer than with each stage's groups on links of their own
  Seconds beside_passes;  ///< what of the step is spared in data-parallel traffic beside passes
};

/// How traffic of one stage beside its passes meets that of the stages which share its links (training/met_traffic.h).
struct MetTraffic {
  double share = 0;  ///< share of it beside which another stage's is under way, in the mean over those stages
  double in_phase = 0;  ///< share of that which finds its links in use by the others at the same time
};

/// What groups of other stages have to send in a step, relative to those of one stage.
struct SentByOthers {
  double mean = 1, least = 1;  ///< over all other stages, and at the one that sends least; at most 1
};
/// Calls go with the blocks of a stage, data-parallel traffic with its parameters.
SentByOthers sent_by_others(const TrainingStep& inputs, std::size_t stage, ParallelGroup group);

/// Whether the step could get shorter by more than a thousandth if siblings took turns.
bool worth_turns(const SiblingTimes& passes, const SiblingTimes& once, const TimedStage& stage);

/// Nothing where that is not worth_turns(). `by_others(group)`: what other stages send, relative to this one. `beside`:
/// of data-parallel traffic beside passes.
SiblingTurns sibling_turns(const SiblingTimes& passes, const SiblingTimes& once, const TimedStage& stage,
                           const EnumArray<ParallelGroup, double>& by_others, const MetTraffic& beside);

}  // namespace shardscape::step
