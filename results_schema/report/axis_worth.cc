#include "results_schema/report/axis_worth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/base/nearest_rank.h"

namespace shardscape::report {

namespace {

using results::Better;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Gathered {
  std::uint64_t points = 0, feasible = 0;
  std::vector<double> costs;  ///< objectives with the sign turned so that smaller is better
  double best = std::numeric_limits<double>::infinity();
  std::size_t best_row = 0;
};

}  // namespace

std::vector<AxisValue> axis_values(std::span<const double> axis, const std::vector<bool>& feasible,
                                   std::span<const double> objective, Better better) {
  const double sign = better == Better::larger ? -1 : 1;
  std::map<double, Gathered> values;
  for (std::size_t row = 0; row < axis.size(); ++row) {
    if (std::isnan(axis[row])) continue;
    Gathered& gathered = values[axis[row]];
    ++gathered.points;
    if (!feasible[row]) continue;
    ++gathered.feasible;
    if (std::isnan(objective[row])) continue;
    const double cost = sign * objective[row];
    gathered.costs.push_back(cost);
    if (cost < gathered.best) gathered.best = cost, gathered.best_row = row;
  }
  std::vector<AxisValue> result;
  for (auto& [value, gathered] : values) {
    std::ranges::sort(gathered.costs);
    const auto quantile = [&costs = gathered.costs, sign](double share) {
      return sign * nearest_rank(costs, share);
    };
    const bool any = !gathered.costs.empty();
    result.push_back({value, gathered.points, gathered.feasible, any ? sign * gathered.best : kNaN,
                      quantile(0.25), quantile(0.5), quantile(0.75), quantile(1), gathered.best_row});
  }
  return result;
}

double spread_of_best(std::span<const AxisValue> values) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const AxisValue& value : values) {
    if (std::isnan(value.best)) continue;
    low = std::min(low, value.best);
    high = std::max(high, value.best);
  }
  return low > 0 && high > low ? high / low - 1 : 0;
}

}  // namespace shardscape::report
