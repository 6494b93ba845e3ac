// What the fault samples of one point come to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "results_schema/records.h"

namespace shardscape::sweep {

/// One sample of a point.
struct SampleOutcome {
  double slowdown = 0;                  ///< NaN where unreachable
  std::int32_t link = -1, device = -1;  ///< of its first fault
};

/// Slowdowns above this count as noticed.
inline constexpr double kNoticeable = 0.01;

/// Percentiles by nearest rank: the smallest value that at least the share p of the values do not exceed.
results::FaultSummary summarise(std::span<const SampleOutcome> samples);

/// Samples before the first look at the interval: fewer and the normal law is no good guide.
inline constexpr std::int64_t kLeastSamplesOfTarget = 30;

/// Decides sample by sample whether the mean is known well enough: the full width of its 95 % confidence
/// interval under the normal law, 2 * 1.96 * standard error (Law 2015, "Simulation Modeling and Analysis",
/// 9.4.1: sequential procedure), is at most `target`, after kLeastSamplesOfTarget samples or more. Never
/// without a target. Sums by Welford 1962.
class StoppingRule {
 public:
  explicit StoppingRule(std::optional<double> target) : target_(target) {}
  /// Unreachable samples (NaN) do not count. True: enough.
  bool add(double slowdown);

 private:
  std::optional<double> target_;
  std::int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace shardscape::sweep
