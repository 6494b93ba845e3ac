#include "results_schema/report/axis_worth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/base/nearest_rank.h"
#include "results_schema/report/selection.h"

namespace shardscape::report {

namespace {

using results::Better;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Gathered {
  std::uint64_t points = 0, feasible = 0;
  std::vector<double> costs;  ///< objectives with the sign turned so that smaller is better, ascending
  std::size_t best_row = 0;
};

}  // namespace

std::vector<std::size_t> ranked_feasible(const std::vector<bool>& feasible, std::span<const double> objective,
                                         Better better) {
  std::vector<double> counted(objective.begin(), objective.end());
  for (std::size_t row = 0; row < counted.size(); ++row) {
    if (!feasible[row]) counted[row] = kNaN;
  }
  return ranked_values(counted, better);
}

std::vector<AxisValue> axis_values(std::span<const double> axis, const std::vector<bool>& feasible,
                                   std::span<const double> objective, std::span<const std::size_t> ranked,
                                   Better better) {
  const double sign = better == Better::larger ? -1 : 1;
  constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();
  std::map<double, std::uint32_t> places;
  std::vector<Gathered> values;  // by place
  std::vector<std::uint32_t> place_of(axis.size(), kNone);
  auto last = places.end();  // an axis keeps its value from row to row
  for (std::size_t row = 0; row < axis.size(); ++row) {
    if (std::isnan(axis[row])) continue;
    if (last == places.end() || last->first != axis[row]) {
      last = places.try_emplace(axis[row], static_cast<std::uint32_t>(values.size())).first;
      if (last->second == values.size()) values.emplace_back();
    }
    place_of[row] = last->second;
    Gathered& gathered = values[last->second];
    ++gathered.points;
    if (feasible[row]) ++gathered.feasible;
  }
  for (const std::size_t row : ranked) {
    if (place_of[row] == kNone) continue;
    Gathered& gathered = values[place_of[row]];
    if (gathered.costs.empty()) gathered.best_row = row;
    gathered.costs.push_back(sign * objective[row]);
  }
  std::vector<AxisValue> result;
  for (const auto& [value, place] : places) {
    const Gathered& gathered = values[place];
    const auto quantile = [&costs = gathered.costs, sign](double share) {
      return sign * nearest_rank(costs, share);
    };
    const double best = gathered.costs.empty() ? kNaN : sign * gathered.costs.front();
    result.push_back({value, gathered.points, gathered.feasible, best, quantile(0.25), quantile(0.5),
                      quantile(0.75), quantile(1), gathered.best_row});
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
