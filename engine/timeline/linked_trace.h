// An execution trace with its dependencies resolved: which node waits for which, within a rank and between ranks.
//
// The k-th send from a to b with a tag belongs to the k-th receive of it; the k-th collective of a rank in a
// process group to the k-th of every other member, both in the order of the nodes in their traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/timeline/execution_trace.h"

namespace shardscape::timeline {

/// What is wrong with a trace, on which rank and at which node.
struct TraceProblem {
  std::int32_t rank = -1;  ///< -1: a problem of the process groups
  std::optional<std::uint64_t> node;
  std::string message;
};
using TraceProblems = std::vector<TraceProblem>;

/// One collective operation: the node of each member, in the order of the group.
struct CollectiveInstance {
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;
  std::int32_t group = 0;             ///< index in LinkedTrace::groups
  std::vector<std::int64_t> members;  ///< node numbers
};

/// A trace with the links between its nodes. Nodes of all ranks are numbered rank by rank.
struct LinkedTrace {
  const ExecutionTrace* trace = nullptr;
  std::vector<std::int64_t> first;  ///< node number of each rank's first node, and the end
  /// Nodes that wait for node n: waiters[waiters_begin[n] .. waiters_begin[n+1]).
  std::vector<std::int64_t> waiters_begin;
  std::vector<std::int64_t> waiters;
  /// Number of dependencies of each node on nodes of its own rank.
  std::vector<std::int32_t> waiting;
  /// The receive that belongs to a send, and the reverse; -1 for other nodes.
  std::vector<std::int64_t> partner;
  /// Index in `collectives` of a collective node; -1 for other nodes.
  std::vector<std::int32_t> instance;
  std::vector<std::vector<std::int32_t>> groups;  ///< lists of ranks that collectives use
  std::vector<CollectiveInstance> collectives;
  /// Compute nodes of every rank's device and host in the order in which they would run if communication were free: by
  /// the time at which they become ready, then by id.
  std::vector<std::vector<std::int64_t>> device, host;

  [[nodiscard]] std::int64_t nodes() const { return first.back(); }
  [[nodiscard]] std::int32_t rank_of(std::int64_t number) const;
  [[nodiscard]] const TraceNode& node(std::int64_t number) const;
};

/// `shape`: sizes of the fabric's dimensions, innermost first; their product is the number of ranks it has.
///
/// Problems, all of one kind of check at once: ids used twice, dependencies that don't exist, groups and
/// partners outside the trace, sends and receives without each other or of different sizes, collectives that
/// differ between members, and nodes that wait for each other (with the circle).
tl::expected<LinkedTrace, TraceProblems> link(const ExecutionTrace& trace,
                                              const std::vector<std::int64_t>& shape);

}  // namespace shardscape::timeline
