// Link loads of an operation of several stages, one after the other, such as those along the dimensions of a fabric.
#pragma once

#include <memory>
#include <span>

#include "engine/network/link_loads.h"

namespace shardscape::network {

struct StageLoads {
  double seconds = 0;  ///< that the stage takes
  std::shared_ptr<const LinkLoads> loads;
};
/// The mean over the time of all stages.
LinkLoads mean_loads(std::span<const StageLoads> stages);

}  // namespace shardscape::network
