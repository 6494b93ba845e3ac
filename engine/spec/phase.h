// What a machine is used for.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"

namespace shardscape {

enum class Phase : std::uint8_t { training, inference };
SHARDSCAPE_ENUM_NAMES(Phase, "training", "inference");

/// Where a row of a table means something.
enum class Phases : std::uint8_t { training, inference, both };
constexpr bool applies(Phases phases, Phase phase) {
  return phases == Phases::both || static_cast<int>(phases) == static_cast<int>(phase);
}

}  // namespace shardscape
