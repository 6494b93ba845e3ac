// How far contention may carry a step away from what the hierarchical mode says of it.
//
// That mode prices an operation with all of its sibling groups sending at once, and traffic of different axes
// as if each had the links to itself. Executed, two things are otherwise:
//
//   siblings  groups of other pipeline stages that share links are mostly at other work. With T the time of
//             an operation among all siblings and T_s that among those of one stage, up to T - T_s of each
//             operation is not there.
//   axes      gathers and scatters run beside the passes of every microbatch. In D seconds in which they send the tensor
//             and context calls of the pass send for the share q of the time; where both use the
//             same links each gets half, so the pass takes D q longer (fair sharing of one link by two
//             flows: while both are there, both take twice as long). What calls take at the ranks, to begin and to copy,
//             leaves the links to others.
//
//             Gradients and updated weights go once in a step: the part of them that passes hide meets their
//             calls likewise, and of the rest siblings count.
//
// The sum over the critical stage, as a share of the step. Left out: messages between stages.
#pragma once

#include "engine/step/data_costs.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

/// The stage that ends last.
struct TimedStage {
  std::size_t stage = 0;
  Seconds step;       ///< the whole step
  Seconds passes;     ///< of it those of this stage, without data-parallel traffic
  Seconds host;       ///< of them what waits for the host
  double bubble = 0;  ///< what it waits for others, over its passes
  Seconds data_tail;  ///< and what is left of data-parallel traffic after them
};

/// Of a healthy machine.
struct Contention {
  Breakdown added;          ///< to the step, by what takes longer
  double marked_share = 0;  ///< of the step: how far it may still be off
};
/// `known`, `data`: what plans share, or both null.
Contention contention_of(const TrainingStep& inputs, const TimedStage& step,
                         network::CollectiveModel& collectives, LayerTimes* known = nullptr,
                         StageDataCosts* data = nullptr);

}  // namespace shardscape::step
