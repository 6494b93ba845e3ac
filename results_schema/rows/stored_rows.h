// Which points of a sweep become rows of its file. All are evaluated and counted, whatever is chosen.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/enum_names.h"
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

/// pareto: the feasible points that no other dominates; top: the best by the first objective. As in /summary, points
/// with a measure that is NaN are not ranked, and of equal points the one with the smallest id is first.
enum class RowChoice : std::uint8_t { all, feasible, pareto, top };

struct StoredRows {
  RowChoice choice = RowChoice::all;
  /// For `top`: the number of rows, or fewer where fewer are feasible; otherwise 0.
  std::uint64_t count = 0;
  std::vector<std::string> front;  ///< for `pareto`: columns with a direction; otherwise empty

  [[nodiscard]] bool all() const { return choice == RowChoice::all; }
  /// The columns whose values decide: for `pareto` its own, for `top` the objectives, for the others none.
  [[nodiscard]] const std::vector<std::string>& measures(const std::vector<std::string>& objectives) const;
  friend bool operator==(const StoredRows&, const StoredRows&) = default;
};

/// The choice as text: "all", "feasible", "pareto step_time_s memory_peak_bytes", "top 1000".
std::string to_string(const StoredRows& rows);
/// Reads such a text; nothing for other texts.
std::optional<StoredRows> parse_stored_rows(std::string_view text);

/// Chooses the rows to store while points come one after the other, with memory for the answer only. Takes feasible
/// points in any order. A refused point is not among the rows of any set of points that includes those offered, since it
/// is dominated, or as many better points are known as there are rows; an accepted one may be. So every part of a sweep
/// can drop refused points, and the choice among the accepted ones of all parts is the choice among all.
class RowSelector {
 public:
  /// `directions`: of StoredRows::measures(), smaller or larger. `rows` must be a choice other than all. `bound`: a
  /// bound() that holds for all points.
  RowSelector(const StoredRows& rows, std::vector<Better> directions,
              double bound = std::numeric_limits<double>::infinity());

  /// Offers a point with its measures; returns whether it may be stored. Call from one thread at a time.
  bool offer(std::uint64_t point_id, std::span<const double> values);

  /// With `top`, points that cost more than this (in the first measure, with the sign turned so that smaller is better)
  /// are not among the rows; infinite while nothing is known. Call from any thread.
  [[nodiscard]] double bound() const { return bound_.load(std::memory_order_relaxed); }

  /// The rows among all points offered, by id, ascending. Not for `feasible`, which keeps all.
  [[nodiscard]] std::vector<std::uint64_t> chosen() const;

 private:
  bool offer_top();

  const RowChoice choice_;
  const std::uint64_t count_;
  const std::vector<Better> directions_;
  PointCosts point_;  ///< the point being offered
  ParetoFront front_;
  std::priority_queue<std::pair<double, std::uint64_t>> top_;  ///< cost and id, the worst first
  std::atomic<double> bound_;
};

}  // namespace shardscape::results
