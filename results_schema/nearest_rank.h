// Percentiles by nearest rank.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace shardscape::results {

/// The smallest value that at least this share (0..1] of the ascending values do not exceed. NaN where there
/// are none.
inline double nearest_rank(std::span<const double> ascending, double share) {
  if (ascending.empty()) return std::numeric_limits<double>::quiet_NaN();
  // Shares such as 0.1 are not exact: 0.1 * 30 must be rank 3, not 4.
  const double rank = std::ceil(share * static_cast<double>(ascending.size()) - 1e-9);
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return ascending[std::min(index, ascending.size() - 1)];
}

}  // namespace shardscape::results
