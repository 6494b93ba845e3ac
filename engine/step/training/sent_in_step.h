// What a training step sends: over each link, for how long that keeps the link busy, and how much longer a sick one (no
// step is shorter than one of its links is busy); and the bytes that the axes of a plan send, by which a placement is
// judged.
#pragma once

#include <vector>

#include "engine/base/memo.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/spec/group_bytes.h"
#include "engine/step/training/step_machine.h"

namespace shardscape::step {

/// What all stages send in a step on a healthy machine.
struct SentInStep {
  /// Seconds of operations on their links, by stage; key: with the slice of the first stage.
  ShortMemo<network::CollectiveKey, std::vector<Seconds>> operations;
  /// Seconds for which operations keep each link busy, and messages between stages do. Stages are taken to have equal
  /// parts of a link, and an algorithm that is neither a ring nor runs in rounds to keep all of its links busy.
  std::vector<double> busy, messages;
  network::LinkSet used;  ///< the links that carry anything
};
SentInStep sent_in_step(const StepMachine& healthy);

/// For how long that keeps a sick link busy: its bytes take so many times as long as on a healthy one, but no operation
/// is on it for longer than on all of its links.
Seconds busy_on_slow_link(const SentInStep& sent, const ParallelPlan& plan,
                          const network::CollectivePrices& sick, const network::SickLinks::SlowLink& slow);

/// Bytes per group in one training step. Hidden traffic counts like any other. `collectives`: of the placement at hand.
GroupBytes training_bytes(const TrainingStep& inputs, const network::CollectivePrices& collectives);

/// Bytes that a rank of the group sends on average in all repeats of a call, as in programs of ranks: for exchanges of
/// experts the copies of spec/token_copies.h, for ring algorithms what goes to the successor.
Bytes sent_bytes(const network::CollectivePrices& collectives, const model::CollectiveCall& call,
                 const network::RankGroup& group);

}  // namespace shardscape::step
