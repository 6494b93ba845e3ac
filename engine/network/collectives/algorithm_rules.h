// THE table of collective algorithms: which operations each carries out, where it applies and what it sends.
#pragma once

#include <cstdint>

#include "engine/network/collectives/collectives.h"

namespace shardscape::network {

/// A set of operations, as sum of its members.
using Operations = std::uint8_t;
constexpr Operations only(Operation operation) {
  return static_cast<Operations>(1U << static_cast<unsigned>(operation));
}

/// What an algorithm needs of a group: a power of two of ranks, a box of coordinates whose axes it takes in turn, or a
/// tree of switches that reduce.
enum class GroupNeed : std::uint8_t { nothing, power_of_two, box, switches };

struct AlgorithmRules {
  Algorithm algorithm;
  Operations operations;  ///< operations that the algorithm can carry out
  Operations chunked;     ///< operations whose buffer it cuts into Pattern::chunks
  GroupNeed need;
  std::int32_t rings;  ///< rings that it consists of, 0: none; a single ring may be laid once per channel
  void (*add)(GroupTraffic& group, const Pattern& pattern);
  double (*messages)(const Pattern& pattern, double n);  ///< message_count() of n ranks, n > 1
};

const AlgorithmRules& rules_of(Algorithm algorithm);

}  // namespace shardscape::network
