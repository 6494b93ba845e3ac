// What the exchanges of experts gain and lose by members of the expert group that are ahead of the others.
//
// Unequal loads. Ranks that get few tokens are ahead of the busiest of their group, and ahead of it they use the links
// that it is waiting for, where an expert tensor group splits the experts. With n members, of which the busiest gets
// the share m of all tokens and each other one l = (1 - m) / (n - 1) in the mean, r = l / m, and for the busiest a
// dispatch of d seconds, a gather of g and a scatter of q over the expert tensor group, and work of w between those:
//
//   dispatch  Of two members the other one has its tokens before the busiest has, by b = (1 - r) d. It gathers beside
//             what it still sends the busiest, over the same link of its own, half each, until one of both is through:
//             the busiest waits min(b, r g) longer. Where no tensor or context group brings both together between two
//             layers, b = d: the busiest has left the last combine first, so that what it sends comes while the other
//             one waits. Of more members that link has room: the busiest one's takes what n - 1 of them send. Where
//             all work for s seconds meanwhile (shared experts), the other one is only max(d, s) - max(d - b, s) ahead.
//   combine   The others end their scatter ahead of the busiest by
//                 e = (1 - r) (g + w + q) + b
//             and what they send it, r d on its link, runs beside its scatter: n - 1 messages and one of the scatter,
//             all alike, until one of both is through. Where the combine began e - q before the scatter, so much of it
//             is gone; where it begins within the scatter, e of that is left:
//                 min(max(0, r d - max(0, e - q)), (n - 1) min(q, e))
//
// That holds where the scatters use every link that the exchanges do; where those cross slower ones, too, nothing is
// added, nor is it for kernels of a dispatcher of its own.
//
// Sick links. All others wait for the member behind a sick link in the first exchange, by x longer than on healthy
// links. It has (or, where it receives over that link, the others have) all tokens by then, and begins the second
// exchange by the smaller of x and the work in between, w, before they do. Of the y that the second one takes longer
// by itself
//     min(x, y, w)
// is over when the others come to it. Within a domain nothing is of a member whose links
// are sick both ways: it is as late as they are.
//
// Flattened mode executes all of this (tests/property/laws_experts_test.cc).
#pragma once

#include "engine/step/layers/call_prices.h"
#include "engine/step/layers/price_layers.h"

namespace shardscape::step {

/// The times above of one part of a layer, in seconds; where members differ, the busiest one's.
struct ExpertExchanges {
  double members = 2;
  double most = 0.5;  ///< the busiest member's share of all tokens, above 1 / members
  Seconds dispatch, gather, work, scatter;
  bool together = true;  ///< all members enter the dispatch at the same time
  Seconds beside;        ///< work that every member does while the dispatch is under way
};

/// Seconds by which the busiest member is later because others use the links that it needs. O(1).
Seconds crowding(const ExpertExchanges& of);
/// The same for a part of a layer; 0 where its experts are alike, or no expert tensor group splits them.
Seconds crowding(const PartCost& part, const CallPrices& prices);

/// Seconds that sick links add to a part's exchanges, but that are over when the other members come to them.
Seconds hidden_by_lead(const PartCost& part, const CallPrices& prices);

}  // namespace shardscape::step
