// What each value of an axis is worth: how good the objective gets with it, and how good it usually is.
//
// Quantiles are exact, but no objective of a row is kept: in a first pass over the rows the objectives of each value
// are counted in bins whose edges are the objectives of a sample; then each quantile is known to be an edge, or to lie
// in one bin, of which a second pass collects what is in it (Munro and Paterson 1980, selection in two passes with
// limited storage). That is a share of the rows of some three by the size of the sample.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
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

/// Consecutive rows. One element per row in each list.
struct RatedRows {
  std::size_t first = 0;
  std::span<const std::uint8_t> feasible;  ///< 0 or 1
  std::span<const double> objective;
  std::span<const std::span<const double>> axes;  ///< NaN: no value of the axis
};

/// Takes all rows, ascending, twice: count(), end_count(), collect(), and then says what came of it.
class AxisWorth {
 public:
  /// `sample`: objectives of some of the feasible rows, of which more make the second pass lighter; some hundreds do.
  /// `better` other than `larger` means smaller.
  AxisWorth(std::size_t axes, std::span<const double> sample, results::Better better);

  void count(const RatedRows& rows);
  void end_count();
  /// False where all quantiles are known after the first pass.
  [[nodiscard]] bool has_to_collect() const { return collects_; }
  void collect(const RatedRows& rows);

  /// One entry per distinct value of the axis, ascending.
  [[nodiscard]] std::vector<AxisValue> values(std::size_t axis) const;

 private:
  /// A row that is feasible and has an objective.
  struct Ranked {
    std::uint32_t row = 0, bin = 0;  ///< the row among those at hand
    double cost = 0;
  };
  /// A quantile: a cost that is known, or the one of this rank among those of a bin.
  struct Quantile {
    bool known = true;
    double cost = 0;
    std::size_t bin = 0, rank = 0;
    std::vector<double> costs;  ///< of the bin
  };
  /// Of one value of an axis. Costs are objectives with the sign turned so that smaller is better.
  struct Group {
    double value = 0;
    std::uint64_t points = 0, feasible = 0, ranked = 0;
    double best = 0, worst = 0;  ///< costs
    std::size_t best_row = 0;
    std::vector<std::uint64_t> counts;  ///< of ranked rows, by bin
    std::array<Quantile, 3> quantiles;
    std::size_t next = 0;  ///< the place of the value that followed this one the last time

    void add(const Ranked& ranked_row, std::size_t first);
  };
  struct Axis {
    std::map<double, std::size_t> places;  ///< among the groups
    std::vector<Group> groups;
    std::size_t last = 0;  ///< the place of the value that was asked for last

    /// The group of a value, with so many bins where it is new. An axis keeps its value from row to row or goes
    /// through its values in turn: most rows need no search.
    Group& group(double value, std::size_t bins);
  };

  [[nodiscard]] std::size_t bin_of(double cost) const;
  void rate(const RatedRows& rows);
  static Quantile found(const Group& group, double share, std::span<const double> edges);

  double sign_;
  std::vector<double> edges_;  ///< ascending costs. Bin 2 i lies below edge i, bin 2 i + 1 is the edge itself
  std::vector<Axis> axes_;
  std::vector<bool> wanted_;  ///< bins in which a quantile lies
  bool collects_ = false;
  std::vector<Ranked> ranked_;  ///< of the rows at hand, ascending
  /// How many feasible rows, and how many ranked ones, lie before each row at hand, and before their end.
  std::vector<std::uint32_t> feasible_before_, ranked_before_;
};

/// The largest relative difference of the best objectives of two values: how much the right choice on this
/// axis can matter, at least 0. 0 where fewer than two values have a feasible point.
double spread_of_best(std::span<const AxisValue> values);

}  // namespace shardscape::report
