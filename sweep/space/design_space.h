// The design space: point_id <-> plan, both ways, without storing the points.
//
//   point_id = (setting * listed.size() + listed_index) * free + free_index
//
// `setting` is a combination of hardware and workload axes (slowest: neighbouring ids share a simulator's
// memo). A `listed` entry is one (tp, cp, pp, dp) with the axes that hang on it: sequence_parallel only where
// tp > 1, ZeRO stage only where dp * cp > 1, schedule only where pp > 1, virtual stages only where the
// schedule is interleaved, rank orders that differ once axes of degree 1 are dropped. `free` runs over
// recompute and microbatch. Thus each distinct plan has exactly one id, and ids do not depend on limits,
// shards or search order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/spec/plan.h"
#include "engine/spec/workload.h"
#include "sweep/space/constraint.h"
#include "sweep/space/space_spec.h"

namespace shardscape::sweep {

struct PointIndex {
  std::uint64_t setting = 0;
  ParallelPlan plan;
};

class DesignSpace {
 public:
  /// `gpus` >= 1; for inference the training-only axes (zero, recompute, microbatch, schedule, virtual
  /// stages, sequence parallel...) hold a single value. `constraints` are the compiled expressions of
  /// spec.constraints.
  DesignSpace(const SpaceSpec& spec, std::int64_t gpus, Phase phase, std::uint64_t settings);

  [[nodiscard]] std::uint64_t size() const { return settings_ * plans(); }
  [[nodiscard]] std::uint64_t plans() const { return listed_.size() * free_; }  ///< per setting
  [[nodiscard]] PointIndex point(std::uint64_t id) const;                       ///< id < size()
  /// The id of a plan in a setting; nothing where the plan is not in the space. Axes that hang on nothing are
  /// ignored (the ZeRO stage of a plan without data parallelism, ...).
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t setting, const ParallelPlan& plan) const;

 private:
  std::vector<ParallelPlan> listed_;
  std::vector<Recompute> recompute_;
  std::vector<std::int32_t> microbatch_;
  std::uint64_t free_ = 1;
  std::uint64_t settings_ = 1;
};

}  // namespace shardscape::sweep
