// Floors of the families of all settings, by what settings have in common.
//
// What a layer takes at least without its calls depends on the device, the stack, the sequence and the formats of numbers
// (PlanFloor::without_calls), so settings that differ in the fabric, the capacity of the memory or the batch alone share
// it.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/plan_floor.h"
#include "sweep/runner/sweep_job.h"
#include "sweep/search/regions.h"

namespace shardscape::sweep {

class SharedFloors {
 public:
  /// Both outlive the object.
  SharedFloors(const SweepJob& job, const Regions& regions);

  /// Of a family with the least recomputation of the space; `plan`: of the family, with that and the microbatch.
  const PassFloors& of(std::uint64_t setting, const Family& family, std::size_t microbatch,
                       const ParallelPlan& plan, PlanFloor& floor);

 private:
  const Regions& regions_;
  std::vector<std::size_t> group_;                              ///< of each setting
  std::vector<std::vector<std::optional<PassFloors>>> floors_;  ///< by group, then key and microbatch
};

/// Settings that share their passes have the same number.
std::vector<std::size_t> pass_groups(const Study& study);

}  // namespace shardscape::sweep
