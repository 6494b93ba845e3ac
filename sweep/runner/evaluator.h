// The runner's interface to the engine: an object that evaluates the plans of one setting.
#pragma once

#include <functional>
#include <memory>

#include "engine/simulate.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::sweep {

/// Use one object per thread. It may keep data that makes the next plan cheaper, but results depend on the plan alone.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual Prediction evaluate(const ParallelPlan& plan) = 0;
  /// The verdict on a plan as evaluate() gives it, possibly without times (Simulator::judge()).
  virtual Prediction judge(const ParallelPlan& plan) { return evaluate(plan); }
  /// Sets a watch that is asked while steps are executed (Simulator::watch()). Where ranks are placed anew it is told
  /// no times, as one placement's time says little about the best. It is asked about simulated loads, too; other
  /// evaluators that execute nothing never ask.
  virtual void watch(StepWatch) {}
  /// Evaluates the plan evaluated last, which must have been ok, on a machine with faults.
  virtual Prediction evaluate_again(const FaultSet& faults) = 0;
};

/// Makes the evaluator of a setting, which must outlive it. Called from any worker thread.
using EvaluatorFactory = std::function<std::unique_ptr<Evaluator>(const Setting&, PlacementChoice)>;

/// Evaluates by simulation; all evaluators of a factory and its copies share prices of collectives. For each plan that
/// is ok in plain order an optimised placement is searched, as `simulate --optimise-placement` does; faults then meet
/// the plan there.
EvaluatorFactory simulator_factory(SimulateOptions options = {});

}  // namespace shardscape::sweep
