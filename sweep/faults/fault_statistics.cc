#include "sweep/faults/fault_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/base/nearest_rank.h"

namespace shardscape::sweep {

namespace {

constexpr double kNormal95 = 1.959963984540054;  // the quantile 0.975 of the normal distribution

}  // namespace

results::FaultSummary summarise(std::span<const SampleOutcome> samples) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  results::FaultSummary summary;
  summary.samples = static_cast<std::int32_t>(samples.size());
  std::vector<double> sorted;
  double sum = 0, worst = 0;
  std::int64_t noticeable = 0;
  for (const SampleOutcome& sample : samples) {
    if (std::isnan(sample.slowdown)) continue;
    sorted.push_back(sample.slowdown);
    sum += sample.slowdown;
    if (sample.slowdown > kNoticeable) ++noticeable;
    if (sample.slowdown <= worst) continue;
    worst = sample.slowdown;
    summary.worst_link = sample.link;
    summary.worst_device = sample.device;
  }
  summary.unreachable = summary.samples - static_cast<std::int32_t>(sorted.size());
  if (sorted.empty()) {
    summary.mean = summary.p50 = summary.p95 = summary.p99 = summary.max = kNaN;
    summary.above_1pct = summary.standard_error = kNaN;
    return summary;
  }
  const auto count = static_cast<double>(sorted.size());
  summary.mean = sum / count;
  double squares = 0;
  for (const double slowdown : sorted) squares += (slowdown - summary.mean) * (slowdown - summary.mean);
  summary.standard_error = sorted.size() < 2 ? kNaN : std::sqrt(squares / (count - 1) / count);
  std::ranges::sort(sorted);
  summary.p50 = nearest_rank(sorted, 0.50);
  summary.p95 = nearest_rank(sorted, 0.95);
  summary.p99 = nearest_rank(sorted, 0.99);
  summary.max = sorted.back();
  summary.above_1pct = static_cast<double>(noticeable) / count;
  return summary;
}

bool StoppingRule::add(double slowdown) {
  if (!target_ || std::isnan(slowdown)) return false;
  ++count_;
  const double step = slowdown - mean_;
  mean_ += step / static_cast<double>(count_);
  squares_ += step * (slowdown - mean_);
  if (count_ < kLeastSamplesOfTarget) return false;
  const auto n = static_cast<double>(count_);
  return 2 * kNormal95 * std::sqrt(squares_ / (n - 1) / n) <= *target_;
}

}  // namespace shardscape::sweep
