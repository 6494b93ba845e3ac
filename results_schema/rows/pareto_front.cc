#include "results_schema/rows/pareto_front.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace shardscape::results {

bool PointCosts::assign(std::uint64_t id, std::span<const double> values,
                        std::span<const Better> directions) {
  SHARDSCAPE_CHECK(values.size() == directions.size(), id, values.size());
  point_id = id;
  costs.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return false;
    // Adding +0 turns -0 into +0, so that equal values have equal bits.
    costs[i] = (directions[i] == Better::larger ? -values[i] : values[i]) + 0.0;
  }
  return true;
}

bool PointCosts::dominates(const PointCosts& a, const PointCosts& b) {
  for (std::size_t i = 0; i < a.costs.size(); ++i) {
    if (a.costs[i] > b.costs[i]) return false;
  }
  return a.costs != b.costs || a.point_id <= b.point_id;
}

// The front is kept in ascending order of costs. A point that dominates another has no larger first cost, so that it
// stands before it or has the same first cost.
bool ParetoFront::offer(const PointCosts& point) {
  const double first = point.costs[0];
  for (const PointCosts& other : points_) {
    if (other.costs[0] > first) break;
    if (PointCosts::dominates(other, point)) return false;
  }
  const auto from =
      std::ranges::lower_bound(points_, first, {}, [](const PointCosts& other) { return other.costs[0]; });
  points_.erase(std::remove_if(from, points_.end(),
                               [&](const PointCosts& other) { return PointCosts::dominates(point, other); }),
                points_.end());
  points_.insert(std::ranges::upper_bound(points_, point.costs, {}, &PointCosts::costs), point);
  return true;
}

}  // namespace shardscape::results
