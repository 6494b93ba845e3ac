// Statistics of the fault samples of one point.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "results_schema/rows/records.h"

namespace shardscape::sweep {

/// The outcome of one sample of a point.
struct SampleOutcome {
  double slowdown = 0;                  ///< NaN where unreachable
  std::int32_t link = -1, device = -1;  ///< place of its first fault
};

/// Slowdowns above this count as noticeable.
inline constexpr double kNoticeable = 0.01;

/// Summarises the samples. Percentiles are by nearest rank: the smallest value that at least the share p of the values
/// do not exceed.
results::FaultSummary summarise(std::span<const SampleOutcome> samples);

/// Number of samples before the interval is first looked at; with fewer the normal distribution is a poor
/// approximation.
inline constexpr std::int64_t kLeastSamplesOfTarget = 30;

/// Decides after each sample whether the mean is known well enough: whether the full width of its 95 % confidence
/// interval under a normal distribution, 2 * 1.96 * standard error (Law 2015, "Simulation Modeling and Analysis",
/// 9.4.1: sequential procedure), is at most `target`, with at least kLeastSamplesOfTarget samples. Never without a
/// target. Sums by Welford 1962.
class StoppingRule {
 public:
  explicit StoppingRule(std::optional<double> target) : target_(target) {}
  /// Adds a sample; unreachable ones (NaN) do not count. Returns whether there are enough.
  bool add(double slowdown);

 private:
  std::optional<double> target_;
  std::int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace shardscape::sweep
