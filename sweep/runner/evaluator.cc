#include "sweep/runner/evaluator.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "engine/network/fabric/fabric.h"
#include "engine/network/placement/placement.h"
#include "sweep/placement/optimise_placement.h"
#include "sweep/runner/shared_networks.h"

namespace shardscape::sweep {

namespace {

class SimulatorEvaluator final : public Evaluator {
 public:
  SimulatorEvaluator(const Setting& setting, const SimulateOptions& options) : simulator_(setting, options) {}
  Prediction evaluate(const ParallelPlan& plan) override { return simulator_.run(plan); }
  Prediction judge(const ParallelPlan& plan) override { return simulator_.judge(plan); }
  void watch(StepWatch watch) override { simulator_.watch(std::move(watch)); }
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
    plan_ = plan;
    placed_.reset();
    best_.clear();
    if (plain.status != Status::ok || plan.gpus() == 1) return plain;
    std::map<network::Placement, Prediction> timed;
    const Phase phase = setting_.workload.phase;
    Seconds least = plain.whole(phase);
    const auto time = [&](const network::Placement& placement) {
      if (placement.empty()) return plain.whole(phase);
      const Prediction& there =
          timed.try_emplace(placement, run_within(kNoMatch * least, plan, placement)).first->second;
      if (there.status != Status::ok) return Seconds(std::numeric_limits<double>::infinity());
      least = std::min(least, there.whole(phase));
      return there.whole(phase);
    };
    const network::PlacementDemand demand = network::plan_demand(plan, details.group_bytes);
    best_ = placement::optimise_placement(fabric_, plan, demand, time).best.placement;
    if (!std::ranges::is_sorted(best_)) return timed.at(best_);
    best_.clear();
    return plain;
  }

  Prediction judge(const ParallelPlan& plan) override { return plain_.judge(plan); }

  void watch(StepWatch watch) override {
    watch_ = {};
    if (watch) watch_ = [watch = std::move(watch)](Seconds) { return watch(Seconds(0)); };
    plain_.watch(watch_);
    if (placed_) placed_->watch(watch_);
  }

  Prediction evaluate_again(const FaultSet& faults) override {
    if (best_.empty()) return plain_.rerun(faults);
    if (!placed_) {
      placed_ = on(best_);
      placed_->run(plan_);
    }
    return placed_->rerun(faults);
  }

 private:
  /// How much longer than the least time a placement may take and still be chosen (optimise_placement.h chooses within
  /// 1e-9).
  static constexpr double kNoMatch = 1 + 1e-6;

  /// Evaluates a plan, but ends executions that take longer than `most`.
  Prediction run_within(Seconds most, const ParallelPlan& plan, const network::Placement& placement) const {
    Simulator simulator = on(placement);
    simulator.watch([&](Seconds at_least) { return at_least <= most && (!watch_ || watch_(at_least)); });
    return simulator.run(plan);
  }
  [[nodiscard]] Simulator on(const network::Placement& placement) const {
    SimulateOptions options = options_;
    options.placement = placement;
    Simulator simulator(setting_, std::move(options));
    simulator.watch(watch_);
    return simulator;
  }

  const Setting& setting_;
  SimulateOptions options_;
  network::Fabric fabric_;
  Simulator plain_;
  StepWatch watch_;
  // The plan evaluated last and its placement (empty: its own ranks), from which faults start.
  ParallelPlan plan_;
  network::Placement best_;
  std::optional<Simulator> placed_;
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
