// The Pareto front of points that come one after the other, in any order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "results_schema/columns.h"

namespace shardscape::results {

/// A point and what it costs: values of measures, the sign turned so that smaller is better.
struct PointCosts {
  std::uint64_t point_id = 0;
  std::vector<double> costs;  ///< one at least

  /// Sets both from values in their own direction, smaller or larger; false where one is NaN.
  bool assign(std::uint64_t id, std::span<const double> values, std::span<const Better> directions);
  /// True where `b` costs no less of anything and, where it costs the same of all, has a larger id (or is the same).
  static bool dominates(const PointCosts& a, const PointCosts& b);
};

/// The points offered so far that none of the others dominates. Of several with equal costs it keeps the smallest id,
/// so that it does not depend on the order of the offers.
class ParetoFront {
 public:
  /// Whether the point is on the front now. O(size of the front).
  bool offer(const PointCosts& point);
  /// Ascending by the first cost, then the next, then by id.
  [[nodiscard]] std::span<const PointCosts> points() const { return points_; }

 private:
  std::vector<PointCosts> points_;
};

}  // namespace shardscape::results
