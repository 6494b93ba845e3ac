// Collective algorithms as messages and gates.
//
// n ranks, B bytes, c chunks; "sends" counts the bytes a rank puts on the network.
//
//   ring                n-1 steps (2(n-1) for all-reduce) of B/n to the successor; step s of a rank needs the
//                       receipt of step s-1. Sends B(n-1)/n per pass.
//                       Over channels (channel_rings.h): so many rings, each with its part of B.
//   bidirectional ring  two rings in opposite directions with B/2 each.
//   direct              B/n to each other rank at once, offsets 1 .. n-1; all-reduce: twice, the second time
//                       after all receipts of the first.
//                       All-to-all: in unequal parts where the pattern says so (Skew).
//   halving-doubling    log2 n exchanges of B/2, B/4, ... and back (Thakur et al. 2005); a step needs all
//                       earlier receipts. Sends B(n-1)/n per pass.
//   double binary tree  two trees with B/2 each, such that the inner ranks of one are leaves of the other
//                       (Sanders, Speck and Traeff 2009); all-reduce: up to the roots and down again,
//                       broadcast: from the root of the group, which is in neither tree, to both. Chunks
//                       follow each other, about 2 B per rank for all-reduce.
//   binary tree         broadcast down a heap-shaped tree, chunk by chunk.
//   ring broadcast      along the open chain of the ranks, chunk by chunk: (n - 2 + c) steps of B/c.
//   dimension-wise      a ring per fabric axis, innermost first, on data that shrinks by each extent, and
//                       back (Cho et al. 2019, BlueConnect). Sends B(n-1)/n per pass.
//   pairwise            n-1 rounds with one partner each; a rank begins a round when what it sent in the last
//                       one is delivered and what it should hear is there.
//   in-network          the switches reduce on the way up and multicast on the way down (SHARP, NVLS): each
//                       rank sends its part once and receives its result once, chunk by chunk.
//
// Every function takes the members of one group with, for each, a gate that lets it in and a gate to count
// down when it has all that it is owed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/network/collectives/traffic_builder.h"

namespace shardscape::network {

/// One group under construction. `entry` and `exit`: one gate per member, or kNone.
struct GroupTraffic {
  TrafficBuilder& builder;
  std::vector<std::int32_t> ranks;
  std::vector<std::int32_t> entry;
  std::vector<std::int32_t> exit;
  double start = 0;  ///< seconds; nothing is sent earlier

  [[nodiscard]] std::size_t size() const { return ranks.size(); }
};

// Add what an algorithm sends for one group of a pattern that it carries out.
void add_rings(GroupTraffic& group, const Pattern& pattern);  ///< also over channels
void add_bidirectional_ring(GroupTraffic& group, const Pattern& pattern);
void add_direct(GroupTraffic& group, const Pattern& pattern);
void add_halving_doubling(GroupTraffic& group, const Pattern& pattern);
void add_double_binary_tree(GroupTraffic& group, const Pattern& pattern);
void add_binary_tree(GroupTraffic& group, const Pattern& pattern);
void add_dimension_wise(GroupTraffic& group, const Pattern& pattern);
void add_pairwise(GroupTraffic& group, const Pattern& pattern);
void add_in_network(GroupTraffic& group, const Pattern& pattern);

// Broadcasts of ring and direct from the first member to all others.
void add_chain_broadcast(GroupTraffic& group, const Pattern& pattern);
void add_direct_broadcast(GroupTraffic& group, const Pattern& pattern);

/// Adds microbatches along a chain of ranks (a rank may come again, but not twice in a row).
void add_pipeline(GroupTraffic& chain, const Pattern& pattern);

/// Adds the traffic of one group of `pattern` by its operation and algorithm (algorithm_rules.h); nothing for
/// point_to_point. The members must be in the order in which the algorithm takes them.
void add_collective(GroupTraffic& group, const Pattern& pattern);

/// A tree of switches with the ranks of a group as leaves. Shared adapters count as switches.
struct SwitchTree {
  struct Node {
    std::int32_t parent = -1;  ///< index in `nodes`; -1 for the root
    std::int32_t member = -1;  ///< index in the group, -1 for a switch
    std::int32_t up = -1;      ///< link to the parent
    std::int32_t down = -1;    ///< link from the parent
    std::int32_t below = 0;    ///< number of members in the subtree
  };
  std::vector<Node> nodes;  ///< the root comes first, and parents come before children
};

/// The tree over which the switches of one dimension can reduce for the group: rooted where the routes of the
/// first member turn down at the highest level, each rank by the fewest hops. False where the group is not
/// within one such dimension with in_network_reduction, or dead links cut it. O(links of the fabric).
bool find_switch_tree(const FaultyFabric& fabric, std::span<const std::int32_t> ranks, SwitchTree& tree);

}  // namespace shardscape::network
