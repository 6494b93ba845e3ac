// All groups of one kind on the machine: explicit ranks, equal sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/network/fabric.h"
#include "engine/network/rank_group.h"
#include "engine/network/slices.h"

namespace shardscape::network {

struct SiblingGroups {
  std::size_t size = 0;             ///< ranks of each group, >= 1
  std::vector<std::int32_t> ranks;  ///< of the fabric, group by group
  double copies = 1;             ///< that each stands for, itself included: alike, over other links (tiles.h)
  std::optional<Slice> tile_of;  ///< they stand for all groups of this slice, on healthy links

  [[nodiscard]] std::size_t count() const { return ranks.size() / size; }
  /// So many of the first ones have the shapes of all: groups whose levels nest with the axes of the fabric (tiles.h) are
  /// boxes of one shape.
  [[nodiscard]] std::size_t shapes() const { return tile_of ? 1 : count(); }
  [[nodiscard]] std::span<const std::int32_t> group(std::size_t g) const {
    return std::span(ranks).subspan(g * size, size);
  }
  [[nodiscard]] std::vector<std::vector<std::int32_t>> nested(std::span<const std::size_t> which) const;
  [[nodiscard]] std::vector<std::vector<std::int32_t>> nested() const;
};

/// The groups that tile the logical ranks, or a slice of them that none of them leaves (groups with a mirror: those that
/// have members in it), in the order of their first ones; logical rank i lies on rank placement[i] of the fabric (on i
/// where the placement is empty: all).
SiblingGroups sibling_groups(const RankGroup& group, const Fabric& fabric,
                             std::span<const std::int32_t> placement, const Slice& slice = {});

/// Of these groups those of the first tile, with every rank at its own number: the others are copies of them, and take
/// the same time over other links. All groups where that is not known.
SiblingGroups first_tile(const RankGroup& group, const Fabric& fabric, const Slice& slice = {});

/// The pairs of these members of each group.
SiblingGroups pairs_of(const SiblingGroups& groups, std::size_t first, std::size_t second);

/// The same groups, each in the order of ring_order(). The groups must be boxes.
SiblingGroups along_wires(const SiblingGroups& groups, const Fabric& fabric);

/// Where ranks lie along the dimensions of a scope, by number: the domains of the scale-up network that they lie in
/// (scale_out), or their seats there (scale_up).
std::vector<std::int64_t> places_of(const Fabric& fabric, std::span<const std::int32_t> ranks,
                                    LinkScope scope);

/// Of each group its rings over channels (channel_rings.h), one after the other.
SiblingGroups over_channels(const SiblingGroups& groups, const Fabric& fabric, std::int32_t channels);

}  // namespace shardscape::network
