#include "sweep/runner/evaluator.h"

#include <optional>
#include <utility>

#include "engine/network/fabric.h"
#include "engine/network/placement.h"
#include "sweep/placement/optimise_placement.h"
#include "sweep/runner/shared_networks.h"

namespace shardscape::sweep {

namespace {

class SimulatorEvaluator final : public Evaluator {
 public:
  SimulatorEvaluator(const Setting& setting, const SimulateOptions& options) : simulator_(setting, options) {}
  Prediction evaluate(const ParallelPlan& plan) override { return simulator_.run(plan); }
  Prediction judge(const ParallelPlan& plan) override { return simulator_.judge(plan); }
  Prediction evaluate_again(const FaultSet& faults) override { return simulator_.rerun(faults); }

 private:
  Simulator simulator_;
};

class PlacingEvaluator final : public Evaluator {
 public:
  PlacingEvaluator(const Setting& setting, SimulateOptions options)
      : setting_(setting),
        options_(std::move(options)),
        fabric_(setting.system.fabric),
        plain_(setting, options_) {}

  Prediction evaluate(const ParallelPlan& plan) override {
    Details details;
    const Prediction plain = plain_.run(plan, {}, &details);
    placed_.reset();
    if (plain.status != Status::ok || plan.gpus() == 1) return plain;
    const auto time = [&](const network::Placement& placement) {
      if (placement.empty()) return whole_time(plain);
      return whole_time(on(placement).run(plan));
    };
    const network::PlacementDemand demand = network::plan_demand(plan, details.group_bytes);
    placed_ = on(placement::optimise_placement(fabric_, plan, demand, time).best.placement);
    return placed_->run(plan);
  }

  Prediction judge(const ParallelPlan& plan) override { return plain_.judge(plan); }

  Prediction evaluate_again(const FaultSet& faults) override {
    return placed_ ? placed_->rerun(faults) : plain_.rerun(faults);
  }

 private:
  [[nodiscard]] Simulator on(const network::Placement& placement) const {
    SimulateOptions options = options_;
    options.placement = placement;
    return Simulator(setting_, std::move(options));
  }

  [[nodiscard]] Seconds whole_time(const Prediction& prediction) const {
    return setting_.workload.phase == Phase::training ? prediction.step_time : prediction.e2e;
  }

  const Setting& setting_;
  SimulateOptions options_;
  network::Fabric fabric_;
  Simulator plain_;
  std::optional<Simulator> placed_;  ///< the plan evaluated last, where it lies
};

}  // namespace

EvaluatorFactory simulator_factory(SimulateOptions options) {
  options.networks = shared_networks();
  return [options](const Setting& setting, PlacementChoice placement) -> std::unique_ptr<Evaluator> {
    if (placement == PlacementChoice::optimised) return std::make_unique<PlacingEvaluator>(setting, options);
    return std::make_unique<SimulatorEvaluator>(setting, options);
  };
}

}  // namespace shardscape::sweep
