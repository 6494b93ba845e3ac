// What an operation takes where sibling groups of other slices of the machine take turns with it.
//
// On links of its own an operation takes T_1, with all siblings at once T. Of n groups that share its busiest links
// each keeps those busy for T / n, n being 2 or, where T is more than twice T_1, T / T_1. While the others send for a
// share u of the time, the links are busy for T / n (1 + (n - 1) u) of an operation: it takes no longer while that is
// less than T_1, which is what its own hops take elsewhere. Of what is beyond only kMetInTurn shows: groups that have
// met once come apart.
#pragma once

#include <algorithm>

#include "engine/base/quantity.h"

namespace shardscape::network {

/// What execution adds over what the rule above adds: 0.3 to 0.9 of most of 90 random plans on torus and rail fabrics.
constexpr double kMetInTurn = 0.6;

/// `alone`, `at_once`: of messages on links.
inline Seconds among_siblings(Seconds alone, Seconds at_once, double share) {
  if (at_once <= alone || alone <= Seconds(0)) return at_once;
  const double n = std::max(2.0, at_once / alone);
  const Seconds busy = ((1 + (n - 1) * share) / n) * at_once;
  return alone + kMetInTurn * std::max(Seconds(0), busy - alone);
}

}  // namespace shardscape::network
