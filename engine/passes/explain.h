// The operator table behind `simulate --explain`.
#pragma once

#include <string>
#include <vector>

#include "engine/network/collective_model.h"
#include "engine/passes/training.h"
#include "engine/prediction.h"

namespace shardscape::passes {

/// How often a list of operators runs on the critical rank.
struct ExplainedLayer {
  const std::vector<model::Operator>& operators;
  std::string forward_phase;  ///< "forward", "prefill", "decode"
  double forward_count = 0;
  double backward_count = 0;   ///< 0 for inference
  double recompute_count = 0;  ///< forwards repeated in backward
  bool recompute_core_only = false;
  network::Slice slice = {};  ///< collectives are those of this stage
};

/// Appends a row per operator and direction that takes time; backward of a product is its input gradient
/// (_dgrad) and its weight gradient (_wgrad), and what accumulating the weight gradients of the list takes is
/// a row of its own. Collectives show their full time, hidden parts included.
void explain(const ExplainedLayer& layer, const Setting& setting, const ParallelPlan& plan,
             network::CollectiveModel& collectives, std::vector<OperatorRow>& rows);

/// Appends the optimizer of a training step that takes `time` in all.
void explain_optimizer(const OptimizerCost& cost, Seconds time, std::vector<OperatorRow>& rows);

}  // namespace shardscape::passes
