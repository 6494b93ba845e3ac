// The time that a software stack takes for one message of an algorithm, besides the latency of the links.
#pragma once

#include <cstdint>
#include <span>

#include "engine/network/fabric/fabric.h"
#include "engine/spec/stack.h"

namespace shardscape::network {

/// Seconds of one step along `path` (numbers of links): rank_step, or rank_step_scale_out where it crosses the
/// scale-out network; 0 on an empty path and on hops between switches.
double step_latency(const Fabric& fabric, const StackProfile::Communication& communication,
                    std::span<const std::int32_t> path);

}  // namespace shardscape::network
