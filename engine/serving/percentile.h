// Percentiles by nearest rank over values given in arithmetic progressions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardscape::serving {

struct Spread {
  double mean = 0, p50 = 0, p95 = 0;  ///< percentiles by nearest rank
};

/// A spread with two percentiles more.
struct Percentiles : Spread {
  double p90 = 0, p99 = 0;
  void divide(double by) {
    for (double* value : {&mean, &p50, &p95, &p90, &p99}) *value /= by;
  }
};

/// Mean and percentiles of plain values, which are reordered; zeros where there are none.
Spread spread_of(std::vector<double>& values);
Percentiles percentiles_of(std::vector<double>& values);

/// The values first, first + step, ..., first + (count - 1) step, each `weight` times.
struct Progression {
  double first = 0, step = 0;
  std::int64_t count = 1;
  std::int64_t weight = 1;

  [[nodiscard]] double last() const { return first + step * static_cast<double>(count - 1); }
};

/// The smallest of the values that at least `share` (0..1] of them do not exceed; 0 where there are none. Progressions
/// may fall: an iteration can take less time although its sequences have grown. Values are parted at two limits that a
/// sample suggests, and those are dropped that are not on the answer's side, until no more values than progressions are
/// left, of which the one is selected: the time is about proportional to the number of progressions.
double percentile(const std::vector<Progression>& values, double share);
/// The same of several shares, which ascend; what all progressions take is taken once: of many values each share has
/// two limits of its own, and one pass deals out what lies between them.
void percentiles(const std::vector<Progression>& values, std::span<const double> shares,
                 std::span<double> to);
/// Mean and percentiles of progressions.
Spread spread_of(const std::vector<Progression>& values);
Percentiles percentiles_of(const std::vector<Progression>& values);

}  // namespace shardscape::serving
