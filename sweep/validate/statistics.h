// Statistics of predictions against measurements. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace shardscape::validate {

/// A measured value above 0 and its prediction.
struct Pair {
  std::size_t row = 0;  ///< the caller's number of the row
  double measured = 0;
  double predicted = 0;
  [[nodiscard]] double error() const { return predicted / measured - 1; }  ///< signed and relative
};

/// The value below which a share `q` of `sorted` (ascending, not empty) lies: position q (n - 1), counted
/// from 0, linear between neighbours (definition 7 of Hyndman and Fan 1996, the default of NumPy and R).
double quantile(std::span<const double> sorted, double q);

/// Of absolute relative errors, as fractions; all 0 for n = 0.
struct ErrorStatistics {
  std::size_t n = 0;
  double mean = 0, median = 0, p90 = 0, max = 0;
  double bias = 0;  ///< mean of the signed errors
};
ErrorStatistics error_statistics(std::span<const Pair> pairs);

/// Out of memory, measured against predicted; "positive" is out of memory.
struct OomStatistics {
  std::size_t true_positive = 0, false_positive = 0, false_negative = 0, true_negative = 0;

  void add(bool measured, bool predicted);
  [[nodiscard]] std::size_t n() const {
    return true_positive + false_positive + false_negative + true_negative;
  }
  /// Shares of rows judged rightly, of predicted positives that are true, of true positives found; nothing
  /// where the denominator is 0.
  [[nodiscard]] std::optional<double> accuracy() const;
  [[nodiscard]] std::optional<double> precision() const;
  [[nodiscard]] std::optional<double> recall() const;
};

/// Spearman's rank correlation: Pearson's of the ranks, ties share the mean of their ranks. Nothing where
/// there are fewer than two values or all of one side are equal.
std::optional<double> spearman(std::span<const Pair> pairs);

/// Measured time of the predicted best (the first of equals) over the best measured: 1 is perfect. Not empty.
double regret(std::span<const Pair> pairs);

/// Inside groups of rows that a user would choose among.
struct RankingStatistics {
  static constexpr std::size_t kSmallestGroup = 5;
  std::size_t groups = 0;
  std::optional<double> spearman;  ///< mean over the groups that have one
  std::optional<double> regret_mean, regret_max;
};
/// `group_of[row]` >= 0 numbers the group of each row; negative: in none. Groups of fewer than kSmallestGroup
/// pairs do not count.
RankingStatistics ranking_statistics(std::span<const Pair> pairs, std::span<const int> group_of);

}  // namespace shardscape::validate
