// What a machine is used for: training or inference.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"

namespace shardscape {

enum class Phase : std::uint8_t { training, inference };

/// The phases in which a row of a table (an axis, a class of time) means something.
enum class Phases : std::uint8_t { training, inference, both };
constexpr bool applies(Phases phases, Phase phase) {
  return phases == Phases::both || static_cast<int>(phases) == static_cast<int>(phase);
}

}  // namespace shardscape
