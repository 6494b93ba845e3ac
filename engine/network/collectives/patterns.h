// Communication patterns: what groups of ranks want from each other, before it becomes messages.
//
// Several patterns run on one fabric at the same time and contend. A pattern names an operation, the
// algorithm that carries it out, its groups (all at once) and the bytes of one group:
//
//   operation        bytes
//   all_reduce       the buffer of each rank
//   reduce_scatter   full input of each rank
//   all_gather       full output of each rank
//   all_to_all       full input of each rank
//   broadcast        the buffer of the root, the first rank of a group
//   pipeline         one hop of one microbatch
//   point_to_point   (of each send)
//
// Which operations an algorithm carries out stands in the table of algorithm_rules.cc (the last two have none), what it
// sends in collectives.h. Reduction itself takes no time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/network/fabric/faulty_fabric.h"
#include "engine/spec/collective_algorithm.h"

namespace shardscape::network {

enum class Operation : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  pipeline,
  point_to_point
};
SHARDSCAPE_ENUM_NAMES(Operation, "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast",
                      "pipeline", "p2p");

using shardscape::Algorithm;

/// In which order halving-doubling takes its partners: distance 1, 2, 4, ... (near_first) or n/2, n/4, ... (far_first).
enum class HalvingOrder : std::uint8_t { near_first, far_first };

/// Order of the members around a ring: as listed in the group, along a Hamiltonian cycle (see ring_order.h), or several
/// rings, each for a part of the buffer (see channel_rings.h).
enum class RingOrder : std::uint8_t { listed, hamiltonian, channels };

/// Partners of a pairwise all-to-all in round k = 1 .. n-1: rank i sends to i + k and receives from i - k (shift), or
/// exchanges with i xor k (exclusive_or, for powers of two).
enum class PairwisePartners : std::uint8_t { shift, exclusive_or };
SHARDSCAPE_ENUM_NAMES(PairwisePartners, "shift", "xor");

/// How patterns lie in the traffic.
///   in_full   a gate and a message for each rank and step; for readers of single gates, and tests
///   repeated  the steps of a ring are turns of one gate and message per rank: O(n) for n ranks (see traffic.h)
///   compact   the rounds of a pairwise all-to-all, too; and where all messages leave at once and there are many, those
///             that fare alike are one (folded_sends.h). For readers who ask when all is done.
enum class TrafficLayout : std::uint8_t { in_full, repeated, compact };

/// One message of a point_to_point pattern.
struct PointToPoint {
  std::int32_t source = 0;
  std::int32_t destination = 0;
  double bytes = 0;
  double start = 0;  ///< seconds; applies instead of Pattern::start
};

/// Unequal parts of an all-to-all: `shares` of the bytes by member, adding up to 1. Each member sends member i
/// shares[i] of its bytes or, where they are those of the sender, each other member shares of its own. What a member
/// has for itself is not sent.
struct Skew {
  std::vector<double> shares;  ///< index: member; empty: equal parts
  bool of_sender = false;

  [[nodiscard]] double part(std::size_t from, std::size_t to, std::size_t members) const {
    return shares.empty() ? 1 / static_cast<double>(members) : shares[of_sender ? from : to];
  }
};

struct Pattern {
  Operation operation = Operation::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  /// Groups of distinct ranks in ring order; for pipeline: the chains.
  std::vector<std::vector<std::int32_t>> groups;
  double bytes = 0;
  double start = 0;  ///< seconds; nothing of the pattern is sent earlier
  /// Numbers of earlier patterns. A rank enters this pattern once it has received everything that these owe it.
  std::vector<std::int32_t> after;

  HalvingOrder halving_order = HalvingOrder::near_first;
  RingOrder ring_order = RingOrder::listed;  ///< for ring and bidirectional_ring; `channels` only for ring
  /// Number of rings, each of which has its part of the buffer. With a listed order: the group is one of so many rings.
  std::int32_t channels = 1;
  /// Prices the stack's rank step for each message, too (PricedNetwork::step_latency()).
  bool rank_steps = false;
  PairwisePartners partners = PairwisePartners::shift;
  Skew skew;  ///< unequal parts, for all_to_all by `direct`
  /// The buffer is cut into this many equal parts that follow each other: ring and tree broadcast,
  /// double_binary_tree, in_network.
  std::int32_t chunks = 1;

  std::int32_t microbatches = 1;  ///< number of microbatches, for pipeline
  /// For pipeline: seconds from one microbatch to the next at the head of the chain.
  double interval = 0;
  double compute = 0;  ///< for pipeline: seconds that each rank computes before it forwards

  std::vector<PointToPoint> sends;  ///< the messages, for point_to_point
};

/// Limits of what a simulation accepts; more is a problem of the input. Messages cost time, a minute or so at the
/// limit; those that stand in memory one by one (all but steps that are taken turn by turn and messages that are
/// folded, see TrafficLayout) cost about 60 bytes each, with the gates around them, and 200 where they are all on their
/// way at once.
constexpr double kMaxMessages = 1 << 30;
constexpr double kMaxMessagesInMemory = 1 << 25;
constexpr std::int64_t kMaxRouteEntries = std::int64_t{1} << 28;

/// Whether `algorithm` can carry out `operation` at all. Pipelines and point-to-point have no algorithm.
bool supports(Operation operation, Algorithm algorithm);
/// Whether the algorithm cuts the buffer into Pattern::chunks.
bool takes_chunks(Operation operation, Algorithm algorithm);

/// Passes over the buffer: a reduce-scatter and an all-gather make an all-reduce.
constexpr int passes_of(Operation operation) { return operation == Operation::all_reduce ? 2 : 1; }
/// Number of rings of a ring algorithm; 0 for other algorithms.
double rings_of(const Pattern& pattern);
/// Number of messages of one group of that size; for dimension_wise as if along a single axis, for in_network as if
/// over a single switch.
double message_count(const Pattern& pattern, std::int64_t group_size);
/// How many messages of a pattern are stored one by one if none are folded or, if there are more of these, the number
/// of relays and gates beside them.
double messages_in_memory(const Pattern& pattern, TrafficLayout layout, const Fabric& fabric);

/// Every way in which the patterns cannot run on the fabric: ranks out of range or twice in a group, numbers
/// out of range, algorithms that do not fit the operation, the group or the fabric, `after` that is not
/// earlier, more than kMaxMessages. Fields read "patterns[1].groups[0][3]".
Problems check_patterns(const std::vector<Pattern>& patterns, const FaultyFabric& fabric);

}  // namespace shardscape::network
