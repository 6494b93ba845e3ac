// One plan run through the simulator, for tests of what its ranks send.
#pragma once

#include <gtest/gtest.h>

#include "engine/simulate.h"

namespace shardscape::test {

struct PlanOutcome {
  Prediction prediction;
  GroupBytes bytes;
};

/// The plan must be feasible, but for memory.
inline PlanOutcome outcome_of(const Setting& setting, const ParallelPlan& plan,
                              ExecutionMode mode = ExecutionMode::hierarchical) {
  Simulator simulator(setting, {.time_infeasible = true, .mode = mode});
  Details details;
  const Prediction prediction = simulator.run(plan, {}, &details);
  EXPECT_EQ(prediction.status, Status::ok) << name_of(prediction.reason);
  return {prediction, details.group_bytes};
}

}  // namespace shardscape::test
