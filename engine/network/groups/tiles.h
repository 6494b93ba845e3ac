// Groups that are moved copies of each other.
//
// All groups of a kind send at once. Write ranks as numbers of mixed radix whose digits are so fine that each axis of
// the fabric and each level of the group is made of whole digits. Members of a group differ in the digits of its levels
// and agree in the others. Let d be a digit in which they agree. Groups that differ in d alone share no links and take
// equal times if one of the following holds for every axis a along which members differ (the lines of these axes are
// the only links that they use):
//
//   a lies below d   the ranks of other values of d have other lines of a, wired alike
//   a lies above d   likewise if each rank has a line of its own; where ranks share lines (rails), if d says which
//                    rail, or if the lines are alike by digits (LineGraph::alike_by_digits)
//   a contains d     if its lines are alike by digits, or the members differ in digits below d only and the lines are
//                    alike by the blocks that d counts (LineGraph::alike_by_blocks)
//
// The reason: routes go dimension by dimension, the lowest first, so that the digits in which members agree stay as
// they are on the way. Adding to d then leads routes to links of the same rates in the same order, and no link carries
// messages of two values of d. All these copies take the same time: that of those with d = 0.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/network/groups/rank_group.h"
#include "engine/network/groups/slices.h"

namespace shardscape::network {

/// The groups that have to be looked at; all others are copies of these.
struct Tile {
  bool known = false;  ///< false: nothing is known of copies, and all groups have to be looked at
  std::vector<RankGroup::Level>
      digits;         ///< digits of the ranks in which the groups to be looked at differ; innermost first
  double copies = 1;  ///< number of groups that each of them stands for, itself included
};

/// Finds the tile on a healthy fabric with all ranks in their own places. Groups with a mirror are not examined.
/// `slice`: only its groups send.
Tile tile_of(const RankGroup& group, const Fabric& fabric, const Slice& slice = {});

}  // namespace shardscape::network
