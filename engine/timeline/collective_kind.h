// Names of the network's collectives in execution traces.
#pragma once

#include "engine/network/collectives/collective_op.h"
#include "engine/timeline/execution_trace.h"

namespace shardscape::timeline {

/// Chakra's kind of a collective. Passes along rings and chains have none: traces hold them as messages.
inline CollectiveKind kind_of(network::CollectiveOp op) {
  switch (op) {
    case network::CollectiveOp::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case network::CollectiveOp::all_gather:
      return CollectiveKind::all_gather;
    case network::CollectiveOp::all_to_all:
    case network::CollectiveOp::expert_dispatch:
    case network::CollectiveOp::expert_combine:
    case network::CollectiveOp::dispatch:
    case network::CollectiveOp::combine:
    case network::CollectiveOp::last_combine:
    case network::CollectiveOp::low_latency_dispatch:
    case network::CollectiveOp::low_latency_combine:
      return CollectiveKind::all_to_all;
    case network::CollectiveOp::broadcast:
      return CollectiveKind::broadcast;
    default:
      return CollectiveKind::all_reduce;
  }
}

}  // namespace shardscape::timeline
