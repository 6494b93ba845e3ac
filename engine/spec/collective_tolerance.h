// The tolerance that prices of contended collectives are computed to.
#pragma once

namespace shardscape {

/// Such a price may be too long by this relative error, unless a simulation asks for a smaller one.
inline constexpr double kCollectiveTolerance = 0.005;

}  // namespace shardscape
