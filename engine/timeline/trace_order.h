// In which order a trace's nodes can run, and who waits for whom for ever where there is none.
#pragma once

#include "engine/timeline/linked_trace.h"

namespace shardscape::timeline {

/// Fills `device` and `host` of a trace that is linked otherwise. Problems: one circle of nodes that wait for
/// each other. O(nodes log nodes).
TraceProblems order_nodes(LinkedTrace& linked);

}  // namespace shardscape::timeline
