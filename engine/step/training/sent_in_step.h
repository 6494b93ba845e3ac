// What a training step sends over each link, for how long that keeps the link busy, and how much longer a sick link: no
// step is shorter than one of its links is busy.
#pragma once

#include <vector>

#include "engine/network/prices/collective_prices.h"
#include "engine/step/training/step_machine.h"

namespace shardscape::step {

/// What all stages send in a step on a healthy machine.
struct SentInStep {
  struct Operation {
    network::CollectiveKey key;     ///< with the slice of the first stage
    std::vector<Seconds> of_stage;  ///< on its links, by stage
  };
  std::vector<Operation> operations;
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

}  // namespace shardscape::step
