// Finds the order in which a trace's nodes can run; where there is none, the nodes that wait for each other for ever.
#pragma once

#include "engine/timeline/linked_trace.h"

namespace shardscape::timeline {

/// Fills `device` and `host` of a trace whose other links are set. Problems: one circle of nodes that wait for each
/// other. O(nodes log nodes).
TraceProblems order_nodes(LinkedTrace& linked);

}  // namespace shardscape::timeline
