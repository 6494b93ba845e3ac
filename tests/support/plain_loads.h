// Simulated loads by brute force (plain_live_server.h): the next thing that happens is searched for, one after the
// other. The oracle of engine/serving/live.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/serving/live/serve_load.h"
#include "engine/serving/live/serve_pools.h"
#include "tests/support/plain_live_server.h"

namespace shardscape::serving {

struct PlainLive : PlainWork {
  std::vector<PlainLiveRequest> done;  ///< requests that count, in the order in which they were done
  double end = 0;
  std::int64_t came = 0;  ///< requests that came from the warm-up's end on
  bool goes_on = true;    ///< not all that are sent have come
  /// Those served in that time: in steady state no more are counted than come in an open loop.
  [[nodiscard]] double served(const LoadSpec& load) const {
    const auto all = static_cast<std::int64_t>(done.size());
    const bool steady = goes_on && load.open() && load.statistic == ClientStatistic::steady;
    return static_cast<double>(steady ? std::min(all, came) : all) / (end - begin);
  }
  bool tied =
      false;  ///< moments of different servers or requests are equal up to rounding, which decides their order
};

PlainLive serve_load_plainly(const Offered& offered, const LiveRules& rules, const Timer& timer);

/// The same of two pools. A cache has `bytes_per_token`; those for one decoder share a link of `rate`, evenly, those
/// from one reader one after the other, and arrive `latency` later.
PlainLive serve_pools_plainly(const Offered& offered, const PooledServers& servers, double rate,
                              double latency, double bytes_per_token);

}  // namespace shardscape::serving
