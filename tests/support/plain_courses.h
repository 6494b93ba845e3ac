// Servers by brute force: every iteration timed, every token's moment kept, every flow of a cache sent. The oracles of
// engine/serving.
#pragma once

#include "engine/serving/pooled_course.h"
#include "engine/serving/server.h"

namespace shardscape::serving {

/// What measure() says of a trajectory().
Measured serve_plainly(const Load& load, const Rules& rules, const Timer& timer);

/// What serve_disaggregated() says.
DisaggregatedMeasured serve_disaggregated_plainly(const DisaggregatedLoad& load,
                                                  bool keep_iterations = false);

}  // namespace shardscape::serving
