// How long the requests of a load become: lognormal lengths know no bound, but a run of the load draws so many of them.
#pragma once

#include <cstdint>

#include "engine/spec/request_load.h"

namespace shardscape::serving {

/// What keep_to_drawn() may cut of a load, as it is before.
struct LengthLaws {
  Lengths prompt, output;
  std::int64_t context = 0;  ///< of sessions
  explicit LengthLaws(const LoadSpec& load);
  /// Gives them to the load, from which they were cut off.
  void give_to(LoadSpec& load) const;
};

/// Cuts lognormal lengths off at the longest that a run of the load sends with so many `clients` (or at their mean),
/// and what sessions with such lengths grow to likewise, so that memory and cache are those of requests that come.
/// Where the context ends sessions they are left alone: servers are made for it. The first 262,144 requests are drawn
/// at most, of sessions as many turns; none after them is longer. Call after begin_sessions(), on a load that is valid.
/// O(requests drawn).
void keep_to_drawn(LoadSpec& load, std::int64_t clients);

}  // namespace shardscape::serving
