// The Pareto front of points that arrive one after the other, in any order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "results_schema/rows/columns.h"

namespace shardscape::results {

/// A point and its costs: values of measures, with the sign turned where larger is better.
struct PointCosts {
  std::uint64_t point_id = 0;
  std::vector<double> costs;  ///< at least one

  /// Sets both from measured values; false where one of them is NaN.
  bool assign(std::uint64_t id, std::span<const double> values, std::span<const Better> directions);
  /// Whether `b` costs at least as much as `a` in everything and, where all costs are equal, has no smaller id.
  static bool dominates(const PointCosts& a, const PointCosts& b);
};

/// The points offered so far that no other one dominates. Of several with equal costs it keeps the smallest id, so that
/// the order of offers does not matter.
class ParetoFront {
 public:
  /// Offers a point; returns whether it is on the front now. O(size of the front).
  bool offer(const PointCosts& point);
  /// The front, ascending by the first cost, then the next, then by id.
  [[nodiscard]] std::span<const PointCosts> points() const { return points_; }

 private:
  std::vector<PointCosts> points_;
};

}  // namespace shardscape::results
