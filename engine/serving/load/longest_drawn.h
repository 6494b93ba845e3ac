// How long the requests of a load become: lognormal lengths know no bound, but a run of the load draws so many of them.
#pragma once

#include <cstdint>

#include "engine/spec/request_load.h"

namespace shardscape::serving {

/// Cuts lognormal lengths off at the longest that a run of the load sends with so many `clients` (or at their mean),
/// and what sessions with such lengths grow to likewise, so that memory and cache are those of requests that come.
/// Where the context ends sessions they are left alone: servers are made for it. Of sessions the first 262,144 turns
/// are drawn at most. Call after begin_sessions(). O(requests).
void keep_to_drawn(LoadSpec& load, std::int64_t clients);

}  // namespace shardscape::serving
