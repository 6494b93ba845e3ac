// What an operation takes where sibling groups of other slices of the machine take turns with it.
//
// On links of its own an operation takes T_1, with all siblings at once T, of which its busiest links are in use for B
// (less than T where it consists of stages that use other links). If n groups share these links, each keeps them busy
// for B / n; n is 2 or, where T is more than twice T_1, T / T_1. While the others send for a share u of the time, the
// links are busy for B / n (1 + (n - 1) u) of an operation, which never takes less. Where two groups
// send together, a link that each keeps busy for T / 2 of its T_1 has to carry both for at least the share T / T_1 - 1
// of the time; for so much of u (all of it where n is above 2) they cost each other T - T_1:
//
//     T(u) = T_1 + m max(u min(1, T / T_1 - 1) (T - T_1),  B / n (1 + (n - 1) u) - T_1)
//
// m is 1 for calls that are many and short, and for traffic whose calls follow each other without a pause. Evidence: in
// the executions of 340 random plans of the shipped training stacks on torus and rail fabrics, siblings add, as a share
// of u (T - T_1), 0.15 in the median where T / T_1 is 1.2, 0.3 at 1.3, 0.5 at 1.4, 0.7 at 1.7 and 0.95 of calls at 2.
// Exchanges of context groups are few and long: groups that have met once drift apart (kMetByExchanges).
#pragma once

#include <algorithm>

#include "engine/base/quantity.h"

namespace shardscape::network {

/// m of exchanges of context groups: what their execution adds over what the rule above adds at m = 1. It is 0.3 to 0.9
/// for most of 90 random plans on torus and rail fabrics.
constexpr double kMetByExchanges = 0.6;

/// T(u) of the rule above: `alone` is T_1 and `at_once` is T, of messages on links; `in_use` is B, `share` is u, `met`
/// is m.
inline Seconds among_siblings(Seconds alone, Seconds at_once, Seconds in_use, double share, double met = 1) {
  if (at_once <= alone || alone <= Seconds(0)) return at_once;
  const double times = at_once / alone, n = std::max(2.0, times);
  const Seconds meets = (share * std::min(1.0, times - 1)) * (at_once - alone);
  const Seconds busy = ((1 + (n - 1) * share) / n) * in_use;
  return alone + met * std::max(meets, busy - alone);
}

}  // namespace shardscape::network
