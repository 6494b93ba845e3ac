// All groups of one kind on the machine, as lists of ranks of equal length.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/network/groups/rank_group.h"
#include "engine/network/groups/slices.h"

namespace shardscape::network {

struct SiblingGroups {
  std::size_t size = 0;             ///< number of ranks of each group, >= 1
  std::vector<std::int32_t> ranks;  ///< ranks of the fabric, group by group
  /// Number of groups that each stands for, itself included; the others are alike, on other links (tiles.h).
  double copies = 1;
  std::optional<Slice> tile_of;  ///< set if they stand for all groups of this slice, on healthy links

  [[nodiscard]] std::size_t count() const { return ranks.size() / size; }
  /// The first groups that have all shapes there are: only one, if levels nest with the axes of the fabric (tiles.h)
  /// and all groups are boxes of one shape.
  [[nodiscard]] std::size_t shapes() const { return tile_of ? 1 : count(); }
  [[nodiscard]] std::span<const std::int32_t> group(std::size_t g) const {
    return std::span(ranks).subspan(g * size, size);
  }
  [[nodiscard]] std::vector<std::vector<std::int32_t>> nested(std::span<const std::size_t> which) const;
  [[nodiscard]] std::vector<std::vector<std::int32_t>> nested() const;
};

/// The groups that tile the logical ranks, or a slice of them that no group leaves (with a mirror: groups that have
/// members in it), in the order of their first ranks. Logical rank i lies on rank placement[i] of the fabric; with an
/// empty placement on rank i, for all ranks of the fabric.
SiblingGroups sibling_groups(const RankGroup& group, const Fabric& fabric,
                             std::span<const std::int32_t> placement, const Slice& slice = {});

/// The groups of the first tile, with every rank at its own number: all other groups are copies of them, and take the
/// same time over other links. All groups where it is not known which are copies.
SiblingGroups first_tile(const RankGroup& group, const Fabric& fabric, const Slice& slice = {});

/// The pairs of members number `first` and `second` of each group.
SiblingGroups pairs_of(const SiblingGroups& groups, std::size_t first, std::size_t second);

/// The same groups, each in the order of ring_order(). The groups must be boxes.
SiblingGroups along_wires(const SiblingGroups& groups, const Fabric& fabric);

/// The place of each rank along the dimensions of a scope, as a number: its domain of the scale-up network (for
/// scale_out), or its seat within the domain (for scale_up).
std::vector<std::int64_t> places_of(const Fabric& fabric, std::span<const std::int32_t> ranks,
                                    LinkScope scope);

/// The rings of each group over channels (channel_rings.h), group after group.
SiblingGroups over_channels(const SiblingGroups& groups, const Fabric& fabric, std::int32_t channels);

}  // namespace shardscape::network
