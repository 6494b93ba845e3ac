// The runner's view of the engine: something that evaluates the plans of one setting.
#pragma once

#include <functional>
#include <memory>

#include "engine/simulate.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::sweep {

/// One object per thread; it may keep what makes the next plan cheaper, but a result depends on the plan
/// alone.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual Prediction evaluate(const ParallelPlan& plan) = 0;
  /// The verdict on a plan as evaluate() gives it, perhaps without its times (Simulator::judge()).
  virtual Prediction judge(const ParallelPlan& plan) { return evaluate(plan); }
  /// From now on asked while steps are executed (Simulator::watch()). Where ranks are placed anew it hears of no time: what
  /// one placement takes says little of the best. Evaluators that execute nothing ask nobody.
  virtual void watch(StepWatch) {}
  /// The plan evaluated last, which was ok, on a machine with faults.
  virtual Prediction evaluate_again(const FaultSet& faults) = 0;
};

/// Makes the evaluator of a setting; the setting outlives it. Called from any worker thread.
using EvaluatorFactory = std::function<std::unique_ptr<Evaluator>(const Setting&, PlacementChoice)>;

/// Evaluates by simulation; all evaluators of a factory and its copies share what collectives take. An optimised placement is searched for each plan that is ok on the plain one, as
/// `simulate --optimise-placement` does; faults meet the plan where it lies then.
EvaluatorFactory simulator_factory(SimulateOptions options = {});

}  // namespace shardscape::sweep
