// How exact prices of contended collectives are.
#pragma once

namespace shardscape {

/// How much too long they may be, relative, unless a simulation asks for less.
inline constexpr double kCollectiveTolerance = 0.005;

}  // namespace shardscape
