// The groups of a plan (engine/spec/parallel_groups.h) as they lie on the ranks.
#pragma once

#include <array>

#include "engine/network/rank_group.h"
#include "engine/spec/parallel_groups.h"

namespace shardscape::network {

class PlanGroups {
 public:
  explicit PlanGroups(const ParallelPlan& plan) {
    const PlanLayout layout(plan);
    for (std::size_t group = 0; group < kParallelGroups; ++group) {
      for (const PlanAxis axis : plan.order) {
        if (spans(static_cast<ParallelGroup>(group), axis))
          groups_[group].push(plan.degree(axis), layout.stride(axis));
      }
    }
  }
  [[nodiscard]] const RankGroup& operator[](ParallelGroup group) const {
    return groups_[static_cast<std::size_t>(group)];
  }

 private:
  std::array<RankGroup, kParallelGroups> groups_;
};

}  // namespace shardscape::network
