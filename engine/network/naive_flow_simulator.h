// The reference simulator: simulates the same traffic, and solves every rate from scratch at every event. Short and
// plain; for tests and --reference.
#pragma once

#include <span>

#include "engine/network/traffic.h"

namespace shardscape::network {

FlowResult simulate_naively(const Traffic& traffic, std::span<const double> link_bytes_per_second,
                            GateObserver* gates = nullptr);

}  // namespace shardscape::network
