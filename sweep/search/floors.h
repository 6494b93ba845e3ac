// Floors of the families of all settings, by what settings have in common.
//
// What the passes of layers take at least without their calls depends on the device, the stack, the sequence and the
// formats of numbers (PlanFloor::without_calls): settings that differ in the fabric, the capacity of the memory, the
// batch or how layers lie over stages alone share it. What steps take at least depends on the last two as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/plan_floor.h"
#include "sweep/runner/sweep_job.h"
#include "sweep/search/regions.h"

namespace shardscape::sweep {

/// The number of each setting's group.
struct SettingGroups {
  std::vector<std::size_t> passes;  ///< settings that share the floors of passes
  std::vector<std::size_t> steps;   ///< settings that share the floors of steps
};
SettingGroups setting_groups(const Study& study);

class FamilyFloors {
 public:
  /// Both outlive the object.
  FamilyFloors(const SweepJob& job, const Regions& regions);

  /// Seconds of a step of every family with every microbatch ([family * microbatches + microbatch]) in a setting,
  /// whatever else its plans do; infinite where they are indivisible or unsupported. Computed once for each group.
  const std::vector<double>& steps(std::uint64_t setting);

 private:
  double step(std::uint64_t setting, const Family& family, std::size_t microbatch, PlanFloor& floor);
  const PassFloors& passes(std::uint64_t setting, const Family& family, std::size_t microbatch,
                           const ParallelPlan& plan, PlanFloor& floor);

  const SweepJob& job_;
  const Regions& regions_;
  SettingGroups groups_;
  std::vector<std::vector<std::optional<PassFloors>>> passes_;  ///< by group, then key and microbatch
  std::vector<std::vector<double>> steps_;                      ///< by group
};

/// A plan of a family with the axes that any plan takes any value of.
inline ParallelPlan with_choice(ParallelPlan plan, const FreeChoice& choice) {
  plan.recompute = choice.recompute;
  plan.microbatch = choice.microbatch;
  return plan;
}

}  // namespace shardscape::sweep
