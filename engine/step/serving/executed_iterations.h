// What one iteration of a server costs, by execution: the flattened counterpart of IterationCosts.
//
// Executed are iterations at the sampled numbers of tokens and rows of IterationCosts, and at attention times
// that are powers of two to the quarter seconds; every other iteration lies linearly between its neighbours.
// That is exact where the time is linear in each, which only a host that launches more slowly than the device
// works, or traffic that outlasts what hides it, bends. Executions are remembered, as prices are there.
//
// An execution of one group's iteration gives its trip through the stages: the classes of time summed over
// the stages, what is left of the trip on its way between them. Where there are several groups, one and then
// two iterations of each are executed, and the difference is what an iteration takes in the steady state; the
// classes are the means over a stage's passes there, and what is more than the trip is waiting for a stage
// that has others to serve. Of replicas the slowest counts, and of a stage its first rank.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/step/serving/emit_iterations.h"
#include "engine/step/serving/price_iterations.h"
#include "engine/step/training/flattened.h"

namespace shardscape::step {

/// Times iterations by executing them; with all classes zero, and run.unreachable set, where dead links cut ranks off
/// that have to talk. All references must outlive the function. `plainly`: executions are not remembered.
serving::Timer executed_timer(const InferenceInputs& inputs, TokenCosts& costs,
                              const network::CollectivePrices& collectives, FlattenedRun& run, bool plainly);

}  // namespace shardscape::step
