// What contention adds to a step of the hierarchical mode, and how far the step may still be off because of it.
//
// That mode prices an operation with all of its sibling groups sending at once, and traffic of different axes
// as if each had the links to itself. Executed, two things are otherwise:
//
//   siblings  groups of other pipeline stages that share links are mostly at other work. With T the time of
//             an operation among all siblings and T_s that among those of one stage, up to T - T_s of each
//             operation is not there. Not priced: it is marked.
//   axes      gathers and scatters run beside the passes of every microbatch. Where both use the same links each gets its
//             fair share (network/link_loads.h): call i, on its links for the share q_i of the pass, keeps f_i of its pace
//             and the traffic g_i. While X seconds of the pass (as it were alone) go by beside it, the pass takes
//             X sum q_i s_i (1 / f_i - 1) longer, and X (1 + sum q_i (s_i (1 / f_i - 1) - (1 - g_i) / f_i)) of the traffic
//             gets done. s_i: the share of what a call takes longer that shows, 1 but for exchanges that the attention core
//             hides; passes that wait for the host hide it, too. What calls take at the ranks, to begin and to copy, and
//             the latency of paths leave the links to others.
//
//             Gradients and updated weights go once in a step: the part of them that passes hide meets their
//             calls in the same way, and of the rest only siblings count.
//
// Priced is kMet of the sum over the critical stage, of every microbatch's share also what the bubble of the pipeline grows
// by. kLeftOpen of that, and what is due to siblings, is the mark, as a share of the step. Left out: messages between
// stages, calls of the embedding and the head.
//
// At least the step lasts as long as calls and traffic of a stage, those of embedding and head with them, keep any link
// busy. Of algorithms that are neither rings nor rounds all links are taken to be busy.
#pragma once

#include "engine/step/data_costs.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

/// Times of the stage that ends last.
struct TimedStage {
  std::size_t stage = 0;
  Seconds step;                         ///< of the whole step
  Seconds passes;                       ///< time of this stage's passes in it, without data-parallel traffic
  Seconds forward_host, backward_host;  ///< the parts of `passes` that wait for the host
  double bubble = 0;                    ///< waiting for other stages, relative to `passes`
  Seconds data_tail;                    ///< data-parallel traffic that is left after the passes
};

/// The contention on a healthy machine.
struct Contention {
  Breakdown added;          ///< seconds added to the step, by the class of time that takes longer
  double marked_share = 0;  ///< share of the step by which its time may still be wrong
};
/// Computes the contention. `known` and `data` are what plans share; give both or neither.
Contention contention_of(const TrainingStep& inputs, const TimedStage& step,
                         network::CollectiveModel& collectives, LayerTimes* known = nullptr,
                         StageDataCosts* data = nullptr);

}  // namespace shardscape::step
