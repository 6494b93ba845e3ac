// What the plain path says of a plan: simulated without memos, shared prices and shortcuts, and requests by the obvious
// courses (plain_courses.h).
#pragma once

#include "engine/simulate.h"
#include "engine/simulate_options.h"

namespace shardscape::test {

class PlainSimulator {
 public:
  /// `setting` must outlive this object.
  explicit PlainSimulator(const Setting& setting, SimulateOptions options = {});
  Prediction run(const ParallelPlan& plan, const FaultSet& faults = {});

 private:
  const Setting& setting_;
  SimulateOptions options_;
};

}  // namespace shardscape::test
