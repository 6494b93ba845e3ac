// What each value of an axis is worth: how good the objective gets with it, and how good it usually is.
//
// Quantiles are exact, but no objective of a row is kept: in a first pass over the rows the objectives of each value
// are counted in bins whose edges are the objectives of a sample; then each quantile is known to be an edge, or to lie
// in one bin, of which a second pass collects what is in it (Munro and Paterson 1980, selection in two passes with
// limited storage). With a sample of n objectives the second pass collects about 3 / n of the rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "results_schema/rows/columns.h"

namespace shardscape::report {

/// The points that share one value of an axis. The quantiles of the objective are by nearest rank over the feasible
/// points that have one, counted from the best one; NaN where there are none.
struct AxisValue {
  double value = 0;
  std::uint64_t points = 0;    ///< number of points, feasible or not
  std::uint64_t feasible = 0;  ///< number of feasible points
  double best = 0, quarter = 0, median = 0, three_quarters = 0, worst = 0;
  std::size_t best_row = 0;  ///< first of the best rows; meaningless where `best` is NaN
};

/// Consecutive rows; each list has one element per row.
struct RatedRows {
  std::size_t first = 0;
  std::span<const std::uint8_t> feasible;  ///< 1 where feasible, else 0
  std::span<const double> objective;
  std::span<const std::span<const double>> axes;  ///< values on each axis; NaN: the row has none
};

/// Takes all rows in ascending order twice, by count(), end_count() and collect(); then gives the values of each axis.
class AxisWorth {
 public:
  /// `sample`: objectives of some feasible rows; a few hundred suffice, more make the second pass lighter. `better`
  /// other than `larger` means smaller.
  AxisWorth(std::size_t axes, std::span<const double> sample, results::Better better);

  void count(const RatedRows& rows);
  void end_count();
  /// Whether a second pass is needed, as not all quantiles are known after the first.
  [[nodiscard]] bool has_to_collect() const { return collects_; }
  void collect(const RatedRows& rows);

  /// One entry for each distinct value of the axis, ascending.
  [[nodiscard]] std::vector<AxisValue> values(std::size_t axis) const;

 private:
  /// A row that is feasible and has an objective; `row` counts from the first row at hand.
  struct Ranked {
    std::uint32_t row = 0, bin = 0;  ///< row within the rows at hand; bin of its cost
    double cost = 0;
  };
  /// A quantile: a known cost, or the cost at a rank within a bin.
  struct Quantile {
    bool known = true;
    double cost = 0;
    std::size_t bin = 0, rank = 0;
    std::vector<double> costs;  ///< collected costs of that bin
  };
  /// The rows of one value of an axis. Costs are objectives with the sign turned so that smaller is better.
  struct Group {
    double value = 0;
    std::uint64_t points = 0, feasible = 0, ranked = 0;
    double best = 0, worst = 0;  ///< smallest and largest cost
    std::size_t best_row = 0;
    std::vector<std::uint64_t> counts;  ///< number of ranked rows per bin
    std::array<Quantile, 3> quantiles;
    std::size_t next = 0;  ///< index of the group whose value followed last time

    void add(const Ranked& ranked_row, std::size_t first);
  };
  struct Axis {
    std::map<double, std::size_t> places;  ///< index in `groups`, by value
    std::vector<Group> groups;
    std::size_t last = 0;  ///< index of the group that was asked for last

    /// The group of a value, made with `bins` bins where the value is new. An axis keeps its value from row to row or
    /// goes through its values in turn, so that most rows need no search.
    Group& group(double value, std::size_t bins);
  };

  [[nodiscard]] std::size_t bin_of(double cost) const;
  void rate(const RatedRows& rows);
  static Quantile found(const Group& group, double share, std::span<const double> edges);

  double sign_;
  std::vector<double> edges_;  ///< ascending costs; bin 2 i lies below edge i, bin 2 i + 1 is edge i itself
  std::vector<Axis> axes_;
  std::vector<bool> wanted_;  ///< the bins in which a quantile lies
  bool collects_ = false;
  std::vector<Ranked> ranked_;  ///< ranked rows among the rows at hand, ascending
  /// Numbers of feasible and of ranked rows before each row at hand, and before their end.
  std::vector<std::uint32_t> feasible_before_, ranked_before_;
};

/// The largest relative difference between the best objectives of two values, >= 0: how much the choice on this axis
/// can matter. 0 where fewer than two values have a feasible point.
double spread_of_best(std::span<const AxisValue> values);

}  // namespace shardscape::report
