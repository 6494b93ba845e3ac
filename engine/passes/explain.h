// The operator table behind `simulate --explain`.
#pragma once

#include <string>
#include <vector>

#include "engine/network/collective_model.h"
#include "engine/passes/layer_costs.h"
#include "engine/prediction.h"

namespace shardscape::passes {

/// How often a list of operators runs on the critical rank.
struct ExplainedLayer {
  const std::vector<workload::Operator>& operators;
  std::string forward_phase;  ///< "forward", "prefill", "decode"
  double forward_count = 0;
  double backward_count = 0;   ///< 0 for inference
  double recompute_count = 0;  ///< forwards repeated in backward
  bool recompute_core_only = false;
  network::Slice slice = {};  ///< collectives are those of this stage
};

/// Appends a row per operator and direction that takes time. Collectives show their full time, hidden parts
/// included.
void explain(const ExplainedLayer& layer, const Setting& setting, const ParallelPlan& plan,
             network::CollectiveModel& collectives, std::vector<OperatorRow>& rows);

/// Appends the optimizer of a training step on `parameters` that the rank owns.
void explain_optimizer(double parameters, Seconds time, std::vector<OperatorRow>& rows);

}  // namespace shardscape::passes
