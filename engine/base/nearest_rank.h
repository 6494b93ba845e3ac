// Computes percentiles by nearest rank.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace shardscape {

/// The index, among `count` > 0 ascending values, of the smallest value that at least a share (0..1] of them do not
/// exceed.
inline std::size_t nearest_rank_index(std::size_t count, double share) {
  // The subtraction absorbs rounding: 0.1 * 30 is slightly above 3, and must be rank 3, not 4.
  const double rank = std::ceil(share * static_cast<double>(count) - 1e-9);
  return std::min(static_cast<std::size_t>(std::max(rank, 1.0)), count) - 1;
}

/// The value at nearest_rank_index(); NaN where there are no values.
inline double nearest_rank(std::span<const double> ascending, double share) {
  if (ascending.empty()) return std::numeric_limits<double>::quiet_NaN();
  return ascending[nearest_rank_index(ascending.size(), share)];
}

}  // namespace shardscape
