// The list of passes that lead from a scenario to a prediction.
//
// A Simulator is bound to one Setting (model, machine, software, workload) and evaluates plans on it. It owns
// the memo tables that make neighbouring plans cheap; they never change a result (`reference` bypasses them).
// One object per thread; objects share nothing but what SimulateOptions::networks keeps for them.
#pragma once

#include <memory>

#include "engine/details.h"
#include "engine/simulate_options.h"
#include "engine/spec/scenario.h"
#include "engine/step_watch.h"

namespace shardscape {

class Simulator {
 public:
  /// `setting` must be valid (Setting's parts validate() clean) and outlive the simulator. Of all of it the concurrency
  /// alone may change meanwhile, before a run().
  explicit Simulator(const Setting& setting, SimulateOptions options = {});
  ~Simulator();
  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;

  /// Evaluates one plan. Never throws on bad plans: infeasibility is a status with a reason. `details`, where
  /// given, is filled for human readers. plan.gpus() must equal the fabric's size; pools of servers
  /// may leave its last ranks idle.
  Prediction run(const ParallelPlan& plan, const FaultSet& faults = {}, Details* details = nullptr);

  /// Sets who is asked, in all later runs (run() and rerun()) of flattened training and of loads that are simulated
  /// request by request, whether to go on; where it answers false the plan gets no time (out_of_range). Empty: nobody
  /// is asked.
  void watch(StepWatch watch);

  /// The verdict on a plan without its time: status and reason, of a plan that divides its memory, too. As run() on a
  /// healthy machine says them, but that a plan which is ok here may be unreachable or out of range there.
  Prediction judge(const ParallelPlan& plan);

  /// The plan of the last run(), which found it ok without faults, on a machine with these faults: the same
  /// as run() with them, without what faults do not change. Where no message of the plan crosses a faulty
  /// link and no device is sick, the prediction is the healthy one, to the bit.
  Prediction rerun(const FaultSet& faults);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardscape
