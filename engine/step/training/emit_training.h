// One training step as programs: every operator of every rank, every message of every collective.
//
// The ingredients are those of price_training.h (operator times, calls, launches, schedule, tail); here they are
// put in their places and the executor finds out what follows.
//
//   overlap of context traffic  the exchange runs beside the first `context_overlap` of the attention core
//   overlap of tensor traffic   a call runs beside the operator next to it for as long as overlap.h says
//   ZeRO-2 and 3 per microbatch gathers and scatters run beside the last `data_overlap` of a pass; compute loses what
//                               it does to those of groups that take turns with other stages' (sibling_turns.h)
//   one order of data traffic   gathers, scatters and buckets of experts and of all else run one after the other
//   gradients once per step     buckets leave as the last microbatch's backward completes them (at the ends
//                               of layers, data_exposure.h), the first when 1 - data_overlap of it is done
//   host                        launches ahead within a pass, and meets the device where the next one begins
//   zero_bubble                 the backward of a block in two passes; weights are gathered for the first,
//                               gradients leave with the second
//   deferred head               the backwards of its microbatches without the head's weight gradient; all of those
//                               after the last backward, before the buckets that hold the head's gradients
//   pairs                       a forward and a backward of another microbatch in one stream (paired_passes.h); what
//                               compute loses to exchanges beside it is waited for behind both
//   dualpipe                    two chunks of a stage for the two directions, each with channels of its own
//   boundaries                  a message to the neighbour, waited for by the sender unless sends are
//                               asynchronous; cut over the tensor group, the receiver gathers it
//   uneven experts              ranks of a stage that hold other experts have programs of their own; what is cut and
//                               hidden where is decided by the times of the busiest
//   sick devices                their operators take what they take there; what is cut, started and hidden
//                               where is decided by the times of healthy ones, so that all members of a
//                               group make the same calls
//
// Chunks of an interleaved schedule hold equal numbers of blocks; the embedding is in the first stage's first
// chunk and the head in the last stage's last one.
#pragma once

#include "engine/execution/program_builder.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

/// Adds the programs of all ranks.
void emit_training(const TrainingStep& inputs, execution::ProgramBuilder& builder);

}  // namespace shardscape::step
