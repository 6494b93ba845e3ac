#include "engine/step/slowest_rank.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardscape::step {

double expected_largest(double n) {
  // Newton on the upper tail Q(z) = p from below: Q is convex there, so that every step stays below the root.
  const double p = 0.625 / (n + 0.25);
  double z = 0;
  constexpr int kMostSteps = 64;
  for (int i = 0; i < kMostSteps; ++i) {
    const double tail = std::erfc(z / std::numbers::sqrt2) / 2;
    const double density = std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    const double step = (tail - p) / density;
    z += step;
    if (std::abs(step) < 1e-12 * (1 + z)) break;
  }
  return z;
}

double slowest_of(double spread, std::int64_t ranks) {
  constexpr double kNode = 8;
  if (spread <= 0 || static_cast<double>(ranks) <= kNode) return 1;
  return 1 + spread * (expected_largest(static_cast<double>(ranks)) - expected_largest(kNode));
}

double slowest_rank(const Setting& setting) {
  if (setting.workload.phase != Phase::training) return 1;
  return slowest_of(setting.system.stack.rank_spread, setting.system.fabric.size());
}

}  // namespace shardscape::step
