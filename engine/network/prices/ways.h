// The ways to carry out an operation of a group: algorithms of the stack's library that suit it, what each takes of its
// ranks, and the messages that it sends.
//
// A group of more than kMostDirectRanks is not offered algorithms of n^2 connections, to keep choice cheap. (For the
// same reason healthy_costs.h leaves out those of too many messages.)
//
// Rings go round in the order of the group. Where the group is a box on ring, mesh, torus, king_mesh or hypercube axes,
// they may also follow a Hamiltonian cycle (ring_order.h): it is taken if it is cheaper or, at equal cost, crosses
// fewer links, so that links without latency are treated as links of any small latency. Groups that span domains are
// also offered as many rings at once as each has members in every domain, with an adapter for each ring
// (channel_rings.h), unless they are boxes of several axes and the library has `dimension_wise`. The hops of such rings
// are unlike, and what the fast ones take hides behind the slow ones: rank_step is a part of each hop's latency
// (ring_time.h), as in an execution, and `steps` is 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/network/collectives/collective_rows.h"
#include "engine/network/groups/sibling_groups.h"
#include "engine/network/prices/curve_maker.h"
#include "engine/network/prices/priced_network.h"
#include "engine/spec/stack.h"

namespace shardscape::network {

constexpr std::int32_t kMostDirectRanks = 64;

/// How an operation is carried out.
struct CollectiveChoice {
  Algorithm algorithm = Algorithm::ring;
  RingOrder ring_order = RingOrder::listed;
  bool in_node = false;       ///< the time follows protocols.h; only the messages are those of the algorithm
  std::int32_t channels = 1;  ///< see Pattern::channels
  friend bool operator==(const CollectiveChoice&, const CollectiveChoice&) = default;
};
/// The choice in words: "ring", "ring along a Hamiltonian cycle", "ring over 8 channels", "dimension_wise", ...
std::string to_string(const CollectiveChoice& choice);

/// One way to carry out an operation of a group.
struct Way {
  CollectiveChoice choice;
  double copied = 0;  ///< bytes that a rank copies per byte of the operation
  double steps = 1;
  double far_steps = 0;  ///< how many of the steps cross the scale-out network
  bool shorter = false;  ///< the same ring as the way before it, in an order that crosses fewer links
  Skew skew = {};
};

/// The ways that the stack's library has and the groups suit, in the library's order; at least one. `groups`: those
/// that have to be looked at.
std::vector<Way> ways_of(CollectiveOp op, const SiblingGroups& groups, const PricedNetwork& healthy,
                         const StackProfile::Communication& communication);
/// The way inside a node, whose time protocols.h has: each rank's link carries what the protocols send over it, and
/// nothing waits.
Way way_in_node(CollectiveOp op, std::size_t members);

/// The bandwidth of a rank's link if every group lies behind one switch of a node; else 0.
BytesPerSecond link_behind_switch(const Fabric& fabric, const SiblingGroups& groups);

/// The pattern of an operation with its groups and bytes, ready to be simulated.
Pattern pattern_of(CollectiveOp op, const Way& way, const SiblingGroups& groups, double bytes);
/// A way's cost curve on the maker's network (with or without the links that it uses), its links alone, and its link
/// loads.
CostCurve curve_of(CurveMaker& maker, CollectiveOp op, const Way& way, const SiblingGroups& groups,
                   const Fabric& fabric, bool with_links = true);
LinkSet links_of(CurveMaker& maker, CollectiveOp op, const Way& way, const SiblingGroups& groups,
                 const Fabric& fabric);
LinkLoads loads_of(CurveMaker& maker, CollectiveOp op, const Way& way, const SiblingGroups& groups,
                   const Fabric& fabric);

}  // namespace shardscape::network
