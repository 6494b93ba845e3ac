// Finds which part of the machine a sick link slows.
//
// A slice is the set of ranks that have one coordinate along an axis of the plan, such as a pipeline stage. Groups that
// lie inside of slices (with a mirror: in two of them) wait for a sick link only where they, or groups that contend
// with them for links, send over it: slices fall into components that share links, and a fault touches whole
// components.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/network/fabric/link_set.h"
#include "engine/network/groups/rank_group.h"

namespace shardscape::network {

/// The logical ranks r with r / stride % extent == index; all ranks where the extent is 1.
struct Slice {
  RankGroup::Level axis;
  std::int32_t index = 0;
  [[nodiscard]] bool everything() const { return axis.extent == 1; }
  [[nodiscard]] bool contains(std::int32_t rank) const {
    return everything() || rank / axis.stride % axis.extent == index;
  }
  friend bool operator==(const Slice&, const Slice&) = default;
};

inline Slice stage_slice(std::int32_t stage, const PlanLayout& layout, const ParallelPlan& plan) {
  return {{plan.pipeline, layout.stride(PlanAxis::pipeline)}, stage};
}

/// The links that the groups of one operation use, slice by slice.
class SliceLinks {
 public:
  /// links[i]: the links of all groups in slice i; all sets must belong to one fabric.
  explicit SliceLinks(std::vector<LinkSet> links);

  /// Links of all slices that share links with slice `index`, directly or through other slices.
  [[nodiscard]] const LinkSet& met_by(std::int32_t index) const {
    return components_[component_of_[static_cast<std::size_t>(index)]];
  }

 private:
  std::vector<LinkSet> components_;        ///< links of each component
  std::vector<std::size_t> component_of_;  ///< index: slice
};

}  // namespace shardscape::network
