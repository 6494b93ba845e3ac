// What is sick: a set of link faults on one fabric.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/quantity.h"

namespace shardscape {

/// Bandwidth of one directed link is multiplied by `derate` (0 < derate <= 1) and its latency grows by
/// `added_latency`; or the link is gone. Several faults of one link add up: derates multiply, latencies sum.
struct LinkFault {
  std::int32_t link = 0;  ///< id in network::Fabric
  double derate = 1;
  Seconds added_latency;
  bool removed = false;  ///< nothing passes; the other two mean nothing then
};

struct FaultSet {
  std::vector<LinkFault> links;
  [[nodiscard]] bool empty() const { return links.empty(); }
};

}  // namespace shardscape
