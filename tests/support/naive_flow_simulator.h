// The oracle of network::FlowSimulator: the same traffic, every rate solved from scratch at every event. Short and
// obvious.
#pragma once

#include <span>

#include "engine/network/collectives/traffic.h"

namespace shardscape::network {

FlowResult simulate_naively(const Traffic& traffic, std::span<const double> link_bytes_per_second,
                            GateObserver* gates = nullptr);

}  // namespace shardscape::network
