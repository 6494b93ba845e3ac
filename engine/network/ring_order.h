// Logical rings along the wires: the members of a group in an order in which neighbours are one hop apart.
//
// A group whose members form a box of coordinates is a grid. A grid of two or more axes has a Hamiltonian
// cycle where some extent is even: a comb (up and down through all but the first position of the other axes,
// home along that first position). With odd extents only, a wrap-around axis closes the cycle: zigzag
// through all but the first position of that axis, home along it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/network/fabric.h"

namespace shardscape::network {

/// The members of `group` as a box: level 0 fastest.
struct GroupBox {
  struct Level {
    std::int32_t dimension = 0;           ///< in FabricSpec::dimensions
    std::int32_t stride = 0;              ///< rank distance of neighbouring coordinates
    bool wraps = false;                   ///< the last coordinate is adjacent to the first
    std::vector<std::int32_t> positions;  ///< coordinates of the members, in leaf_order(); at least two
  };
  std::int32_t origin = 0;  ///< the lowest member
  std::vector<Level> levels;

  [[nodiscard]] std::int32_t size() const;
};

/// Axes are those of the specification's shapes; a hypercube has one axis per bit. False where the members do
/// not form a box.
bool split_into_box(const Fabric& fabric, std::span<const std::int32_t> group, GroupBox& box);

/// The boxes of groups most of which lie as a first one does, which takes far less than to split each.
class BoxesAlike {
 public:
  /// `box`: of the first group. Fabric and group outlive this.
  BoxesAlike(const Fabric& fabric, std::span<const std::int32_t> group, const GroupBox& box);
  /// split_into_box() of any group of at least one rank.
  bool split(std::span<const std::int32_t> group, GroupBox& box) const;

 private:
  const Fabric& fabric_;
  std::span<const std::int32_t> group_;
  GroupBox box_;                     ///< coordinates from 0, ascending
  std::vector<std::int32_t> sizes_;  ///< by level: of the whole axis
};

/// The members in the order of a Hamiltonian cycle, the first member first; along a Hamiltonian path where
/// there is no cycle (all extents odd, nothing wraps); as listed where they form no box.
std::vector<std::int32_t> ring_order(const Fabric& fabric, std::span<const std::int32_t> group);

}  // namespace shardscape::network
