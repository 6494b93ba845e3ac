// What each value of an axis is worth: how good the objective gets with it, and how good it usually is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "results_schema/columns.h"

namespace shardscape::report {

/// The points that share one value of an axis. The quantiles are by nearest rank over the feasible points
/// that have an objective, counted from the best one; NaN where there is none.
struct AxisValue {
  double value = 0;
  std::uint64_t points = 0;    ///< feasible or not
  std::uint64_t feasible = 0;  ///< of them
  double best = 0, quarter = 0, median = 0, three_quarters = 0, worst = 0;
  std::size_t best_row = 0;  ///< the first of the best; meaningless where `best` is NaN
};

/// The feasible rows that have an objective, the best first, equals by row. One element per row in both.
std::vector<std::size_t> ranked_feasible(const std::vector<bool>& feasible, std::span<const double> objective,
                                         results::Better better);

/// One entry per distinct value of `axis`, ascending. `axis`, `feasible` and `objective` have one element per row;
/// `ranked` is what ranked_feasible() gives of them. `better` other than
/// `larger` means smaller. Values of NaN are left out.
std::vector<AxisValue> axis_values(std::span<const double> axis, const std::vector<bool>& feasible,
                                   std::span<const double> objective, std::span<const std::size_t> ranked,
                                   results::Better better);

/// The largest relative difference of the best objectives of two values: how much the right choice on this
/// axis can matter, at least 0. 0 where fewer than two values have a feasible point.
double spread_of_best(std::span<const AxisValue> values);

}  // namespace shardscape::report
