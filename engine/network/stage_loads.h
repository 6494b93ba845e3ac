// Link loads of an operation of several stages, one after the other, such as those along the dimensions of a fabric:
// the mean over the time that the stages take.
#pragma once

#include <cstddef>

#include "engine/network/link_loads.h"

namespace shardscape::network {

/// Those from `first` on are of one stage, which takes so many seconds.
void end_stage(LinkLoads& loads, std::size_t first, double seconds);
/// Once more a stage that was ended, counted from 0.
void repeat_stage(LinkLoads& loads, std::size_t stage);
/// Of all stages that were ended so: ascending by link, each once.
LinkLoads mean_loads(LinkLoads loads);

}  // namespace shardscape::network
