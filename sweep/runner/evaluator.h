// The runner's view of the engine: something that evaluates the plans of one setting.
#pragma once

#include <functional>
#include <memory>

#include "engine/simulate.h"

namespace shardscape::sweep {

/// One object per thread; it may keep what makes the next plan cheaper, but a result depends on the plan
/// alone.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual Prediction evaluate(const ParallelPlan& plan) = 0;
  /// The plan evaluated last, which was ok, on a machine with faults.
  virtual Prediction evaluate_again(const FaultSet& faults) = 0;
};

/// Makes the evaluator of a setting; the setting outlives it. Called from any worker thread.
using EvaluatorFactory = std::function<std::unique_ptr<Evaluator>(const Setting&)>;

/// The engine itself.
EvaluatorFactory simulator_factory(SimulateOptions options = {});

}  // namespace shardscape::sweep
