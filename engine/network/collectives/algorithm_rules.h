// THE table of collective algorithms: which operations each carries out, where it applies, what it sends, how many
// rounds wait for each other and what ranks copy meanwhile.
#pragma once

#include <cstdint>
#include <span>

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
  /// Rounds of messages that wait for each other, in a group of n ranks, n > 1; `extents`: those of its box. Chunks
  /// follow each other without a pause.
  double (*steps)(Operation operation, std::int32_t n, std::span<const std::int32_t> extents);
  /// What one of n ranks reads and writes in device memory, per byte of the operation (CollectiveKey::bytes). Sends and
  /// all-to-all: 0, their copies hide behind the wire.
  double (*copied)(Operation operation, std::int32_t n) = copied_by_ranks;
  bool every_pair = false;  ///< each rank sends to every other, over n (n - 1) connections

  /// A rank reads its input once and writes its output once; what it receives is first written to a buffer and then
  /// read (NCCL's Simple protocol). In units of the bytes:
  ///                       input   received    output   sum
  ///   all_reduce          1       2(n-1)/n    1        6 - 4/n
  ///   reduce_scatter      1       (n-1)/n     1/n      3 - 1/n
  ///   all_gather          1/n     (n-1)/n     1        3 - 1/n
  ///   broadcast                   1           1        3
  static double copied_by_ranks(Operation operation, std::int32_t n);
};

const AlgorithmRules& rules_of(Algorithm algorithm);

}  // namespace shardscape::network
