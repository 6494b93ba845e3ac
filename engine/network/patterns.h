// Communication patterns: what groups of ranks want from each other, before it becomes messages.
//
// Several patterns run on one fabric at the same time and contend. A pattern names an operation, the
// algorithm that carries it out, its groups (all at once) and the bytes of one group:
//
//   operation        bytes                        algorithms
//   all_reduce       the buffer of each rank      ring, bidirectional_ring, direct, halving_doubling,
//                                                 double_binary_tree, dimension_wise, in_network
//   reduce_scatter   full input of each rank      ring, bidirectional_ring, direct, halving_doubling,
//   all_gather       full output of each rank       dimension_wise, in_network
//   all_to_all       full input of each rank      direct, pairwise
//   broadcast        the buffer of the root,      ring, direct, binary_tree, double_binary_tree, in_network
//                    the first rank of a group
//   pipeline         one hop of one microbatch    (none)
//   point_to_point   (of each send)               (none)
//
// What an algorithm sends stands with it in collectives.h. Reduction itself takes no time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/network/faulty_fabric.h"
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

using shardscape::Algorithm;

/// Partners of halving-doubling at distance 1, 2, 4, ... (near_first) or n/2, n/4, ... (far_first).
enum class HalvingOrder : std::uint8_t { near_first, far_first };

/// Neighbours of a logical ring: as listed in the group, along a Hamiltonian cycle (see ring_order.h), or those of
/// several rings, each with its part of the buffer (see channel_rings.h).
enum class RingOrder : std::uint8_t { listed, hamiltonian, channels };

/// Partners of the pairwise all-to-all in round k = 1 .. n-1: rank i sends to i + k and hears from i - k
/// (shift), or exchanges with i xor k (exclusive_or, for powers of two).
enum class PairwisePartners : std::uint8_t { shift, exclusive_or };

/// How patterns lie in the traffic.
///   in_full   a gate and a message for each rank and step; for readers of single gates, and tests
///   repeated  the steps of a ring are turns of one gate and message per rank: O(n) for n ranks (see traffic.h)
///   compact   the rounds of a pairwise all-to-all, too; and where all messages leave at once and there are many, those
///             that fare alike are one (folded_sends.h). For readers who ask when all is done.
enum class TrafficLayout : std::uint8_t { in_full, repeated, compact };

/// One entry of a point_to_point pattern.
struct PointToPoint {
  std::int32_t source = 0;
  std::int32_t destination = 0;
  double bytes = 0;
  double start = 0;  ///< seconds; replaces Pattern::start
};

/// Unequal parts of an all-to-all: `shares` of the bytes by member, adding up to 1. Each member sends member i
/// shares[i] of its bytes or, where they are those of the sender, each other member shares of its own. What a member
/// has for itself is not sent.
struct Skew {
  std::vector<double> shares;  ///< empty: equal ones
  bool of_sender = false;

  [[nodiscard]] double part(std::size_t from, std::size_t to, std::size_t members) const {
    return shares.empty() ? 1 / static_cast<double>(members) : shares[of_sender ? from : to];
  }
};

struct Pattern {
  Operation operation = Operation::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  std::vector<std::vector<std::int32_t>> groups;  ///< distinct ranks in ring order; for pipeline: the chains
  double bytes = 0;
  double start = 0;  ///< seconds: nothing of the pattern is sent earlier
  /// Earlier patterns. A rank enters this pattern when it has received everything they owe it.
  std::vector<std::int32_t> after;

  HalvingOrder halving_order = HalvingOrder::near_first;
  RingOrder ring_order = RingOrder::listed;  ///< for ring and bidirectional_ring; channels: for ring
  /// Rings of a group of which each has its part of the buffer. Listed ones are one of so many each.
  std::int32_t channels = 1;
  bool rank_steps =
      false;  ///< priced messages take the stack's rank step, too (PricedNetwork::step_latency())
  PairwisePartners partners = PairwisePartners::shift;
  Skew skew;  ///< all_to_all by `direct`
  /// The buffer is cut into this many equal parts that follow each other: ring and tree broadcast,
  /// double_binary_tree, in_network.
  std::int32_t chunks = 1;

  std::int32_t microbatches = 1;  ///< pipeline
  double interval = 0;            ///< pipeline: seconds between the injections of microbatches
  double compute = 0;             ///< pipeline: seconds at each rank before it forwards

  std::vector<PointToPoint> sends;  ///< point_to_point
};

/// What a simulation can take; more is a problem of the input. Messages cost time, a minute or so at the
/// limit; those that stand in memory one by one (all but steps that are taken turn by turn and messages that are
/// folded, see TrafficLayout) cost about 60 bytes each, with the gates around them, and 200 where they are all on their
/// way at once.
constexpr double kMaxMessages = 1 << 30;
constexpr double kMaxMessagesInMemory = 1 << 25;
constexpr std::int64_t kMaxRouteEntries = std::int64_t{1} << 28;

/// Whether `algorithm` can carry out `operation` at all. Pipelines and point-to-point have none.
bool supports(Operation operation, Algorithm algorithm);
/// Algorithms that cut the buffer into Pattern::chunks.
bool takes_chunks(Operation operation, Algorithm algorithm);

/// Messages of one group of that size; of dimension_wise along a single axis, of in_network with a single
/// switch.
double message_count(const Pattern& pattern, std::int64_t group_size);
/// Of the messages of a pattern, how many stand in memory one by one where none are folded; or the number of relays
/// and gates beside them where there are more of those.
double messages_in_memory(const Pattern& pattern, TrafficLayout layout, const Fabric& fabric);

/// Every way in which the patterns cannot run on the fabric: ranks out of range or twice in a group, numbers
/// out of range, algorithms that do not fit the operation, the group or the fabric, `after` that is not
/// earlier, more than kMaxMessages. Fields read "patterns[1].groups[0][3]".
Problems check_patterns(const std::vector<Pattern>& patterns, const FaultyFabric& fabric);

}  // namespace shardscape::network

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(network::Operation, "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                      "broadcast", "pipeline", "p2p");
SHARDSCAPE_ENUM_NAMES(network::HalvingOrder, "near_first", "far_first");
SHARDSCAPE_ENUM_NAMES(network::RingOrder, "listed", "hamiltonian", "channels");
SHARDSCAPE_ENUM_NAMES(network::PairwisePartners, "shift", "xor");
}  // namespace shardscape
