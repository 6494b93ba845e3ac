// Chooses the rows to store while points come one after the other, with memory for the answer only.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "results_schema/columns.h"
#include "results_schema/pareto_front.h"
#include "results_schema/stored_rows.h"

namespace shardscape::results {

/// Takes feasible points in any order. Whom it refuses is not among the rows of any whole that these points are a part
/// of: as many better ones are known as there are rows, or one that dominates it. Whom it takes may be. So every part
/// of a sweep, and a part of that, drops what it can, and the choice among all that were taken is the choice among all.
class RowSelector {
 public:
  /// `directions`: of StoredRows::measures(), smaller or larger; `rows` are not all. `bound`: a bound() of the
  /// whole.
  RowSelector(const StoredRows& rows, std::vector<Better> directions,
              double bound = std::numeric_limits<double>::infinity());

  /// `values`: of the measures. One point at a time.
  bool offer(std::uint64_t point_id, std::span<const double> values);

  /// Points of `top` that cost more (of the first measure, the sign turned so that smaller is better) are none of
  /// the rows; infinite while nothing is known. From any thread.
  [[nodiscard]] double bound() const { return bound_.load(std::memory_order_relaxed); }

  /// The rows of all that were offered, by id, ascending. Not of `feasible`, which keeps all.
  [[nodiscard]] std::vector<std::uint64_t> chosen() const;

 private:
  bool offer_top();

  const RowChoice choice_;
  const std::uint64_t count_;
  const std::vector<Better> directions_;
  PointCosts point_;  ///< on offer
  ParetoFront front_;
  std::priority_queue<std::pair<double, std::uint64_t>> top_;  ///< cost and id, the worst first
  std::atomic<double> bound_;
};

}  // namespace shardscape::results
