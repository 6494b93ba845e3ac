// What contention adds to a step of the hierarchical mode, and how far the step may still be off because of it.
//
// That mode prices an operation with all of its sibling groups sending at once, and traffic of different axes
// as if each had the links to itself. Executed, two things are otherwise:
//
//   siblings  groups of other pipeline stages that share links are mostly at other work: the passes of all stages take
//             as long as that makes them, and the pipeline is run again (sibling_turns.h).
//   axes      gathers and scatters run beside the passes of every microbatch: those of weights beside forward and
//             backward, those of gradients beside backward or, where zero_bubble puts weight gradients off, beside
//             these, which call nobody. Where both use the same links each gets its fair share
//             (network/prices/link_loads.h): call i, on its links for the share q_i of the pass, keeps f_i of its pace
//             and the traffic, which is on its links for the share e of its time, g_i. While X seconds of the pass (as
//             it were alone) go by beside it, the pass takes X e sum q_i s_i (1 / f_i - 1) longer, and X (1 + e sum q_i
//             (s_i (1 / f_i - 1) - (1 - g_i) / f_i)) of the traffic gets done. s_i: the share of what a call takes
//             longer that shows, 1 but for exchanges that the attention core hides. What calls and traffic take at
//             the ranks, to begin and to copy, and the latency of paths leave the links to others. A pass that waits
//             for the host hides what its calls take longer, but not that the traffic ends later.
//
//             Gradients and updated weights go once in a step: what of each its passes hide meets their calls in the
//             same way. A pass of W seconds with traffic of T, H of it hidden, then takes the longer of two times:
//             W + T - H and what its calls take longer; and T and what its calls keep from the traffic. Nothing that
//             takes longer makes either less.
//
// The price of contention is the sum of what calls take longer and traffic shows of the critical stage, times kMet; of
// what comes with every microbatch it also has what the bubble of the pipeline grows by. Taken off is a share of what
// groups of the same stage along the context axis cost each other's calls of tensor groups, where ranks drift so that
// they come apart (apart_spared()).
//
// Messages between the chunks of an interleaved schedule share links with traffic of once a step, too, and a message
// that is late makes all later passes late, since stages take turns there without slack. Where messages make the passes
// S longer and passes hide H of the traffic, the step takes S H / (S + H) longer: the smaller of the two where the
// other is much longer, as all of it then meets the other, and half of each where they are equal. (Found on executions,
// see kOnceOpen; other schedules have slack: of 286 random plans none is off by more than 1 %.)
//
// Calls of groups that reach over the links of messages meet these, and keep the pace f while they do. Calls of the
// share q of a step, met by messages of the share m, take q m (1 / f - 1) of it longer: q m where both want the whole
// link, as what a message sends while a call is under way the call sends later; nothing where the link has room for
// both. Messages that block their senders meet calls of other ranks alone and are left out.
//
// Where microbatches enter at both ends, forwards of one way and backwards of the other leave a stage for the same
// neighbour at about the same time, so that their messages meet, and what messages show is kBothWays of it longer.
//
// The marked share is how far that price may be off, over the time of the step: a share each of what exchanges of
// context groups and other calls take longer (kContextOpen, kCallsOpen), of what groups that come apart cost each other
// (kApartOpen) and of what messages cost traffic (kOnceOpen), calls (kMessagesOpen) and each other (kBothWaysOpen), the
// whole time for which messages between stages are under way beside traffic of every microbatch that crosses their
// links, since what they cost is not priced, by how much data-parallel traffic is quicker in other stages, where only
// some lie across nodes, and a share of what early combines of unequal experts may cost dispatches (kCrowdedOpen).
// StepPrediction::contended_share adds to it what turns of siblings and messages between stages that meet each other
// leave open (price_training.cc); above kDomainBand the step is marked as outside the domain of the mode. Left out:
// calls of the embedding and the head.
//
// Several kinds of traffic beside a pass share it evenly, and so do the chunks of a stage traffic of every microbatch.
//
// At least the step lasts as long as calls and traffic of a stage, those of embedding and head with them, keep any link
// busy, and as those of all stages do with the messages between them and what is gathered behind these. Sick links: see
// sent_in_step.h. Of algorithms that are neither rings nor rounds all links are taken to be busy.
#pragma once

#include <boost/container/small_vector.hpp>
#include <functional>

#include "engine/step/layers/sibling_turns.h"
#include "engine/step/training/step_machine.h"

namespace shardscape::step {

/// The contention in a step.
struct Contention {
  /// Seconds added to the step, by the class of time that takes longer; the bubble where messages do, since stages wait
  /// for these.
  Breakdown added;
  double marked_share = 0;  ///< how far `added` may be off, as a share of the step, at least 0
};
/// Computes the contention. Under faults of links calls and traffic have the times that these leave them, and their
/// shares of sick links; the marked share is 0 then, and no link bounds the step.
Contention contention_of(const StepMachine& machine, const TimedStage& step);

/// Whether faults of links make traffic beside the passes of a stage slower.
bool beside_passes_slowed(const StepMachine& machine, std::size_t stage);

/// The most that a call of a tensor group is spared because groups of its stage that lie along the context axis come
/// apart, for floors.
Seconds spared_apart(const ParallelPlan& plan, const network::CollectiveKey& asked,
                     const network::CollectivePrices& collectives);

/// The operations of a stage in a step, and for how long each is on its links.
struct Operations {
  boost::container::small_vector<network::CollectiveKey, 16> keys;
  boost::container::small_vector<Seconds, 16> seconds;
};
Operations operations_of(const StepMachine& machine, std::size_t stage);

/// How siblings take turns in a step on a healthy machine that was timed with all of them sending at once. `step`: its
/// stage that ends last. `beside()`: of its data-parallel traffic, asked for where it may matter.
SiblingTurns turns_of_siblings(const StepMachine& machine, const TimedStage& step,
                               const std::function<MetTraffic()>& beside);

}  // namespace shardscape::step
