// Chooses the rows of a result file that go into the page. Rows are offered one after the other, ascending; what is
// kept of them does not grow with their number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "results_schema/rows/columns.h"
#include "results_schema/rows/summary.h"

namespace shardscape::report {

/// Rows [0, values.size()) sorted by value, the best first, equal ones by row, rows without a value (NaN) last.
/// `better` other than `larger` means smaller.
std::vector<std::size_t> ranked_rows(std::span<const double> values, results::Better better);

/// Keeps the `limit` smallest of all pairs of a key and a thing that are offered. O(1) each on average.
template <class Key, class T>
class Smallest {
 public:
  explicit Smallest(std::size_t limit) : limit_(limit) {}
  void offer(Key key, T what) {
    const std::pair<Key, T> pair(key, what);
    if (full_ && !(pair < bound_)) return;
    kept_.push_back(pair);
    if (kept_.size() > kSlack && kept_.size() / 2 >= limit_) shrink();
  }
  /// The kept pairs, ascending.
  [[nodiscard]] std::vector<std::pair<Key, T>> sorted() {
    if (kept_.size() > limit_) shrink();
    std::ranges::sort(kept_);
    return kept_;
  }

 private:
  // Room beyond the limit, so that small limits are not shrunk to at every offer.
  static constexpr std::size_t kSlack = 16;
  void shrink() {
    if (limit_ == 0) return kept_.clear();
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(limit_ - 1);
    std::ranges::nth_element(kept_, last);
    bound_ = *last;
    full_ = true;
    kept_.resize(limit_);
  }
  std::size_t limit_;
  bool full_ = false;  ///< whether pairs from `bound_` on can be left out
  std::pair<Key, T> bound_{};
  std::vector<std::pair<Key, T>> kept_;
};

/// The first `count` of ranked_rows() that have a value.
class BestRows {
 public:
  BestRows(results::Better better, std::size_t count)
      : sign_(better == results::Better::larger ? -1 : 1), best_(count) {}
  void offer(std::size_t row, double value) {
    if (!std::isnan(value)) best_.offer(sign_ * value, row);
  }
  [[nodiscard]] std::vector<std::size_t> rows();

 private:
  double sign_;
  Smallest<double, std::size_t> best_;
};

/// The rows that no other row beats in all values at once (of equals the first). Rows that lack one of the values take
/// no part.
class FrontRows {
 public:
  /// Takes one direction per value, at least one.
  explicit FrontRows(const std::vector<results::Better>& directions) : builder_(directions, 0) {}
  void offer(std::size_t row, std::span<const double> values) {
    builder_.add(row, Status::ok, Reason::none, values);
  }
  /// The rows of the front, in any order.
  [[nodiscard]] std::vector<std::size_t> rows() const;

 private:
  results::SummaryBuilder builder_;
};

/// A front for each value of a group by itself; rows whose group is NaN are ignored.
class FrontRowsPerGroup {
 public:
  explicit FrontRowsPerGroup(std::vector<results::Better> directions) : directions_(std::move(directions)) {}
  void offer(std::size_t row, double group, std::span<const double> values);
  [[nodiscard]] std::vector<std::size_t> rows() const;

 private:
  std::vector<results::Better> directions_;
  std::map<double, FrontRows> fronts_;
};

/// The lot of a point: samples take the points with the smallest lots. It depends on the id alone, so that a finished
/// file, its segments and a larger shard agree.
std::uint64_t lot_of(std::uint64_t point_id);

/// At most `limit` of the offered rows: all where they are no more; otherwise all of `keep`, even beyond the limit, and
/// others by their lots as far as there is room.
class SampledRows {
 public:
  explicit SampledRows(std::size_t limit) : limit_(limit), drawn_(limit) {}
  void offer(std::uint64_t lot, std::size_t row) {
    ++offered_;
    drawn_.offer(lot, row);
  }
  [[nodiscard]] std::uint64_t offered() const { return offered_; }
  /// The rows that are taken where `keep` is empty, ascending. No row beside these and `keep` is ever taken.
  [[nodiscard]] std::vector<std::size_t> drawn();
  /// The rows that are taken, ascending. `keep` may repeat rows, all of which must have been offered.
  [[nodiscard]] std::vector<std::size_t> rows(std::span<const std::size_t> keep);

 private:
  std::size_t limit_;
  std::uint64_t offered_ = 0;
  Smallest<std::uint64_t, std::size_t> drawn_;
};

}  // namespace shardscape::report
