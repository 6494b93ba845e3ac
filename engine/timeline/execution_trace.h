// Execution traces: for each rank a graph of what it computes, sends, receives and takes part in.
//
// The vocabulary is that of Chakra (Sridharan et al. 2023, "Chakra: Advancing Performance Benchmarking and
// Co-design using Standardized Execution Traces"); sweep/chakra reads and writes the files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/work.h"

namespace shardscape::timeline {

enum class NodeKind : std::uint8_t {
  metadata,  ///< takes no time, only orders others
  memory_load,
  memory_store,
  compute,
  send,
  receive,
  collective
};
SHARDSCAPE_ENUM_NAMES(NodeKind, "metadata", "memory load", "memory store", "compute", "send", "receive",
                      "collective");

/// The order is that of Chakra's numbers.
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier
};

/// `bytes` of a collective is what one rank puts in: its buffer (all_reduce, reduce, broadcast), its share
/// (all_gather, gather), the whole input that is cut up (all_to_all, reduce_scatter, scatter).
struct TraceNode {
  std::uint64_t id = 0;  ///< unique within its rank
  std::string name;
  NodeKind kind = NodeKind::metadata;
  bool host = false;  ///< compute: runs on the host, beside the device

  double seconds = 0;       ///< duration of compute and memory nodes
  double operations = 0;    ///< compute: number of floating-point operations
  double tensor_bytes = 0;  ///< compute and memory: bytes moved

  double bytes = 0;          ///< bytes of a send, receive or collective
  std::int32_t peer = 0;     ///< rank that a send goes to or a receive comes from
  std::int32_t tag = 0;      ///< tells messages between two ranks apart; >= 0 in exported traces
  std::int32_t channel = 0;  ///< messages of one channel follow each other from rank to rank
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::int32_t group = 0;  ///< collective: index in ExecutionTrace::groups

  std::uint32_t dependencies_begin = 0;  ///< range in RankTrace::dependencies
  std::uint32_t dependencies_end = 0;
};

/// A compute node for one kernel, or for several kernels that run one after the other.
TraceNode compute_node(std::string name, double seconds, const Work& work = {});

/// A send to `peer` or a receive from it.
TraceNode message_node(NodeKind kind, std::string name, std::int32_t peer, std::int32_t tag, double bytes);

struct RankTrace {
  std::vector<TraceNode> nodes;
  std::vector<std::uint64_t> dependencies;  ///< ids of nodes that must end before a node begins

  /// Appends a node that depends on `on`; returns its id, which is its index.
  std::uint64_t add(TraceNode node, std::span<const std::uint64_t> on);
  [[nodiscard]] std::span<const std::uint64_t> dependencies_of(const TraceNode& node) const {
    return std::span(dependencies)
        .subspan(node.dependencies_begin, node.dependencies_end - node.dependencies_begin);
  }
};

/// Ranks that communicate. Without a list of ranks, groups consist of ranks that differ only in the given dimensions of
/// the fabric, innermost first; without dimensions all ranks are one group.
struct ProcessGroup {
  std::string name;
  std::vector<std::int32_t> ranks;
  std::vector<bool> dimensions;
};

struct ExecutionTrace {
  std::vector<RankTrace> ranks;
  std::vector<ProcessGroup> groups;
};

}  // namespace shardscape::timeline
