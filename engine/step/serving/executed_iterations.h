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

class ExecutedIterations {
 public:
  /// All references must outlive this object. `plainly`: executions are not remembered.
  ExecutedIterations(const InferenceInputs& inputs, TokenCosts& costs,
                     const network::CollectivePrices& collectives, FlattenedRun& run, bool plainly);

  /// The time of an iteration. Zero, with run.unreachable set, where dead links cut ranks off that have to talk.
  serving::IterationTime operator()(const serving::Iteration& iteration);

 private:
  struct Corner {
    IterationShape shape;
    double share = 1;
  };
  struct Outcome {
    std::vector<double> end;                  ///< index: rank
    std::vector<execution::Ledger> accounts;  ///< index: rank; seconds by account
  };
  [[nodiscard]] std::vector<Corner> corners(const serving::Iteration& iteration);
  const serving::IterationTime& executed(const IterationShape& shape);
  [[nodiscard]] serving::IterationTime execute(const IterationShape& shape);
  std::optional<Outcome> outcome(const IterationShape& shape, std::int64_t groups, std::int64_t rounds);
  [[nodiscard]] std::int32_t slowest_replica(const Outcome& before, const Outcome& after) const;
  [[nodiscard]] std::int32_t rank_of(std::int32_t replica, std::int32_t stage) const;

  const InferenceInputs in_;
  TokenCosts& costs_;
  const network::CollectivePrices& collectives_;
  FlattenedRun& run_;
  const bool plainly_;
  IterationCosts samples_;  ///< knows at which numbers of tokens and rows to sample
  network::PlanLayout layout_;
  std::map<IterationShape, serving::IterationTime> known_;
  serving::IterationTime last_{};
};

}  // namespace shardscape::step
