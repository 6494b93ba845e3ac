// A simulated load by brute force: every iteration one after the other, every token's moment kept, blocks counted anew
// from all lengths. The oracle of engine/serving/live.
#pragma once

#include <vector>

#include "engine/serving/live/serve_load.h"
#include "engine/serving/live/serve_pools.h"

namespace shardscape::serving {

struct PlainLiveRequest {
  DrawnRequest request;
  double admitted = -1;
  std::vector<double> tokens;  ///< moments
  std::int64_t found = 0;      ///< tokens of the prompt that were in the cache
};

struct PlainLive {
  std::vector<PlainLiveRequest> done;  ///< requests that count, in the order in which they were done
  std::vector<double> gaps;            ///< between tokens given after the warm-up
  double begin = 0, end = 0;
  double kv_mean = 0, kv_peak = 0;
  double progress_seconds =
      0;  ///< seconds of iterations times the requests that they serve, after the warm-up
  std::int64_t preemptions = 0;  ///< after the warm-up
  bool tied =
      false;  ///< moments of different servers or requests are equal up to rounding, which decides their order
};

/// Where prefixes are kept, there must be blocks for all of them.
PlainLive serve_load_plainly(const Offered& offered, const LiveRules& rules, const Timer& timer);

/// The same of two pools. A cache has `bytes_per_token`; those for one decoder share a link of `rate`, evenly, those
/// from one reader one after the other, and arrive `latency` later.
PlainLive serve_pools_plainly(const Offered& offered, const PooledServers& servers, double rate,
                              double latency, double bytes_per_token);

}  // namespace shardscape::serving
