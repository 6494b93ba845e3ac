// Training or serving.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"

namespace shardscape {

enum class Phase : std::uint8_t { training, inference };
SHARDSCAPE_ENUM_NAMES(Phase, "training", "inference");

}  // namespace shardscape
