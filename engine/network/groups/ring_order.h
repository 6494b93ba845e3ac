// Makes logical rings along the wires: puts the members of a group in an order in which neighbours are one hop apart.
//
// A group whose members form a box of coordinates is a grid. A grid of two or more axes has a Hamiltonian
// cycle where some extent is even: a comb (up and down through all but the first position of the other axes,
// home along that first position). With odd extents only, a wrap-around axis closes the cycle: zigzag
// through all but the first position of that axis, home along it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/network/fabric/fabric.h"

namespace shardscape::network {

/// The members of a group as a box of coordinates; level 0 is the fastest.
struct GroupBox {
  struct Level {
    std::int32_t dimension = 0;                ///< index in FabricSpec::dimensions
    std::int32_t stride = 0;                   ///< difference in rank between neighbouring coordinates
    bool wraps = false;                        ///< whether the last coordinate is adjacent to the first
    std::vector<std::int32_t> positions = {};  ///< coordinates of the members, in leaf_order(); at least two
  };
  std::int32_t origin = 0;  ///< the lowest rank of the box
  std::vector<Level> levels;

  [[nodiscard]] std::int32_t size() const;
};

/// Splits a group into a box. Axes are those of the specification's shapes; a hypercube has one axis per bit. False
/// where the members do not form a box.
bool split_into_box(const Fabric& fabric, std::span<const std::int32_t> group, GroupBox& box);

/// Splits groups of which most lie like a given first one, at a fraction of the cost of splitting each.
class BoxesAlike {
 public:
  /// `box`: that of the first group. Fabric and group must outlive this object.
  BoxesAlike(const Fabric& fabric, std::span<const std::int32_t> group, const GroupBox& box);
  /// The same as split_into_box(), for any group of at least one rank.
  bool split(std::span<const std::int32_t> group, GroupBox& box) const;

 private:
  const Fabric& fabric_;
  std::span<const std::int32_t> group_;
  GroupBox box_;                     ///< with coordinates that start at 0, ascending
  std::vector<std::int32_t> sizes_;  ///< index: level; size of the whole axis
};

/// The members in the order of a Hamiltonian cycle, from the first member on; of a Hamiltonian path where there is no
/// cycle (all extents odd, and nothing wraps); as listed where they form no box.
std::vector<std::int32_t> ring_order(const Fabric& fabric, std::span<const std::int32_t> group);

}  // namespace shardscape::network
