// Link loads of an operation that consists of stages, one after the other, such as those along a fabric's dimensions.
#pragma once

#include <memory>
#include <span>

#include "engine/network/prices/link_loads.h"

namespace shardscape::network {

struct StageLoads {
  double seconds = 0;  ///< duration of the stage
  std::shared_ptr<const LinkLoads> loads;
};
/// The mean loads over the time of all stages.
LinkLoads mean_loads(std::span<const StageLoads> stages);

}  // namespace shardscape::network
