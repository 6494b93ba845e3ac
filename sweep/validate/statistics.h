// Statistics of predictions against measurements. All functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace shardscape::validate {

/// A measured value above 0 and its prediction.
struct Pair {
  std::size_t row = 0;  ///< the caller's row number
  double measured = 0;
  double predicted = 0;
  [[nodiscard]] double error() const { return predicted / measured - 1; }  ///< signed relative error
};

/// The quantile q of `sorted` (ascending, not empty): the value at position q (n - 1), counted from 0, linear between
/// neighbours (definition 7 of Hyndman and Fan 1996, the default of NumPy and R).
double quantile(std::span<const double> sorted, double q);

/// Statistics of absolute relative errors, as fractions; all 0 for n = 0.
struct ErrorStatistics {
  std::size_t n = 0;
  double mean = 0, median = 0, p90 = 0, max = 0;
  double bias = 0;  ///< mean of the signed errors
};
ErrorStatistics error_statistics(std::span<const Pair> pairs);

/// Numbers of rows by measured and predicted verdict; "positive" is out of memory.
struct OomStatistics {
  std::size_t true_positive = 0, false_positive = 0, false_negative = 0, true_negative = 0;

  void add(bool measured, bool predicted);
  [[nodiscard]] std::size_t n() const {
    return true_positive + false_positive + false_negative + true_negative;
  }
  /// Shares of rows judged correctly, of predicted positives that are true, and of true positives that were predicted;
  /// nothing where the denominator is 0.
  [[nodiscard]] std::optional<double> accuracy() const;
  [[nodiscard]] std::optional<double> precision() const;
  [[nodiscard]] std::optional<double> recall() const;
};

/// Spearman's rank correlation: Pearson's of the ranks, where ties share the mean of their ranks. Nothing where there
/// are fewer than two values or all values of one side are equal.
std::optional<double> spearman(std::span<const Pair> pairs);

/// Measured time of the plan predicted to be best (the first among equals) over the best measured time: 1 is perfect.
/// `pairs` must not be empty.
double regret(std::span<const Pair> pairs);

/// Statistics of the order within groups of rows that a user would choose among.
struct RankingStatistics {
  static constexpr std::size_t kSmallestGroup = 5;
  std::size_t groups = 0;
  std::optional<double> spearman;  ///< mean over the groups for which it is defined
  std::optional<double> regret_mean, regret_max;
};
/// `group_of[row]` >= 0 is the number of the row's group; negative: no group. Groups of fewer than kSmallestGroup pairs
/// do not count.
RankingStatistics ranking_statistics(std::span<const Pair> pairs, std::span<const int> group_of);

}  // namespace shardscape::validate
