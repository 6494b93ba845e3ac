#include "sweep/runner/evaluator.h"

namespace shardscape::sweep {

namespace {

class SimulatorEvaluator final : public Evaluator {
 public:
  SimulatorEvaluator(const Setting& setting, SimulateOptions options) : simulator_(setting, options) {}
  Prediction evaluate(const ParallelPlan& plan) override { return simulator_.run(plan); }
  Prediction evaluate_again(const FaultSet& faults) override { return simulator_.rerun(faults); }

 private:
  Simulator simulator_;
};

}  // namespace

EvaluatorFactory simulator_factory(SimulateOptions options) {
  return [options](const Setting& setting) { return std::make_unique<SimulatorEvaluator>(setting, options); };
}

}  // namespace shardscape::sweep
