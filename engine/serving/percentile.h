// Percentiles by nearest rank over values given in arithmetic progressions.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscape::serving {

struct Spread {
  double mean = 0, p50 = 0, p95 = 0;  ///< percentiles by nearest rank
};

/// Of plain values, which are put in another order; zeros where there are none.
Spread spread_of(std::vector<double>& values);

/// `weight` times each of first, first + step, ..., first + (count - 1) step.
struct Progression {
  double first = 0, step = 0;
  std::int64_t count = 1;
  std::int64_t weight = 1;

  [[nodiscard]] double last() const { return first + step * static_cast<double>(count - 1); }
  /// How many of the values are at most `limit`, unweighted; step >= 0.
  [[nodiscard]] std::int64_t at_most(double limit) const;
};

/// The smallest of the values that at least `share` (0..1] of them do not exceed; 0 where there are none. Progressions
/// may fall: an iteration can take less time although its sequences have grown. Values are parted at a limit that some
/// of them suggest, and the side without the answer is dropped, until no more values than progressions are left, of
/// which the one is selected: the time is about proportional to the number of progressions.
double percentile(std::vector<Progression> values, double share);

}  // namespace shardscape::serving
