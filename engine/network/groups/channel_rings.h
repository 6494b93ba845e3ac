// Rings over channels, as NCCL lays them between nodes: one for each adapter that the group has in every domain.
//
// A domain is what scale-up links reach; the seat of a rank is its place there. Each of k rings goes through all
// domains one after the other and, in each, through all members. It enters a domain over a seat that no other of the k
// rings enters it by, and routes lead to that seat inside the domain before (network README, PXN): so k rings use k
// adapters of each domain, both ways, and every link inside a domain once for each ring.
//
// Groups need not have as many members in one domain as in another: k is at most the fewest that it has in one. No
// other algorithm would be faster for that: everything that the other members hold has to pass the adapters of that
// domain. Where two domains have fewer than k seats in common, a ring takes adapters of neighbours that are not of the
// group. Domains with few members are kept apart for that reason: those at both ends of a row of ranks often have no
// seat in common.
//
// Domains come in the order of their numbers, but that every leaf of a fat tree is entered at the place that the first
// domain has under its leaf (leaf_order()): ports up follow the destination's place, and groups that share a leaf have
// different places there.
//
// Left out: NCCL's choice among several graphs, more channels than adapters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/network/groups/sibling_groups.h"

namespace shardscape::network {

/// Most rings of a group, as in NCCL (MAXCHANNELS in src/include/device.h).
constexpr std::int32_t kMostChannels = 64;

/// Most hops that the rings of all sibling groups have together, some 0.2 s of analysis: it limits the channels.
constexpr double kMostHops = 1 << 18;

/// The number of members in the domain that has the fewest, at most kMostChannels; 0 where the group lies within one
/// domain.
std::int32_t most_channels(const Fabric& fabric, std::span<const std::int32_t> group);

/// How many rings each of the groups is offered; 0 where there are none.
std::int32_t channels_of(const Fabric& fabric, const SiblingGroups& groups);

/// One order of the group's members for each channel. 1 <= channels <= most_channels(); the group must leave a domain.
std::vector<std::vector<std::int32_t>> channel_rings(const Fabric& fabric,
                                                     std::span<const std::int32_t> group,
                                                     std::int32_t channels);

/// Number of coordinates of a dimension's axis that lie under one leaf of a fat tree; 0 where there are no leaves.
std::int32_t under_leaf(const Fabric& fabric, std::int32_t dimension);

/// Puts ascending coordinates along an axis of a dimension in the order in which a ring should go round them. On a fat
/// tree: leaf by leaf, each leaf beginning at the place that the first coordinate has under its own leaf (or behind
/// it), and wrapping to the places before it. On other dimensions they stay as they are.
void leaf_order(const Fabric& fabric, std::int32_t dimension, std::vector<std::int32_t>& coordinates);

}  // namespace shardscape::network
