#include "engine/serving/latency_distribution.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

namespace shardscape::serving {

namespace {

/// Bits of a double below the sign, the exponent and the 12 leading ones of the fraction.
constexpr int kDropped = 40;

/// Values are not negative, so that their bits have the same order as they.
std::uint64_t bucket_of(double value) {
  return std::bit_cast<std::uint64_t>(std::max(0.0, value)) >> kDropped;
}
/// The least value that lies in a later bucket.
double end_of_bucket(std::uint64_t bucket) { return std::bit_cast<double>((bucket + 1) << kDropped); }

}  // namespace

void LatencyDistribution::spread(Progression p) {
  if (p.step < 0) p = {p.last(), -p.step, p.count, p.weight};
  for (std::int64_t i = 0; i < p.count;) {
    const double value = p.first + p.step * static_cast<double>(i);
    const std::uint64_t bucket = bucket_of(value);
    std::int64_t next = p.count;
    const double left = end_of_bucket(bucket) - value;
    if (p.step > 0 && left < p.step * static_cast<double>(p.count - i))
      next = std::min(p.count, i + std::max<std::int64_t>(1, static_cast<std::int64_t>(left / p.step)));
    const auto number = static_cast<double>(next - i);
    Bucket& to = buckets_[bucket];
    to.count += (next - i) * p.weight;
    to.sum += static_cast<double>(p.weight) * number * (value + 0.5 * p.step * (number - 1));
    i = next;
  }
}

void LatencyDistribution::weigh() {
  if (values_.empty()) return;
  for (const double value : std::exchange(values_, {})) progressions_.push_back({value, 0, 1, 1});
}

void LatencyDistribution::repeat(const Mark& since, std::int64_t times) {
  weigh();
  for (Progression& values : std::span(progressions_).subspan(since.size)) values.weight *= 1 + times;
  added_ += times * (added_ - since.added);
}

void LatencyDistribution::spill() {
  for (const double value : std::exchange(values_, {})) spread({value, 0, 1, 1});
  for (const Progression& values : std::exchange(progressions_, {})) spread(values);
}

std::int64_t LatencyDistribution::count() const {
  auto sum = static_cast<std::int64_t>(values_.size());
  for (const Progression& p : progressions_) sum += p.count * p.weight;
  for (const auto& [bucket, content] : buckets_) sum += content.count;
  return sum;
}

Percentiles LatencyDistribution::percentiles() {
  // What came so often is counted as if each had been added by itself.
  if (added_ > static_cast<std::int64_t>(kept_) && buckets_.empty()) spill();
  if (buckets_.empty()) return values_.empty() ? percentiles_of(progressions_) : percentiles_of(values_);
  std::vector<std::pair<std::uint64_t, Bucket>> ordered(buckets_.begin(), buckets_.end());
  std::ranges::sort(ordered, {}, &std::pair<std::uint64_t, Bucket>::first);
  const auto all = static_cast<double>(count());
  Percentiles result;
  for (const auto& [bucket, content] : ordered) result.mean += content.sum / all;
  for (const auto& [share, to] : std::array<std::pair<double, double*>, 4>{
           {{0.5, &result.p50}, {0.9, &result.p90}, {0.95, &result.p95}, {0.99, &result.p99}}}) {
    auto left = static_cast<std::int64_t>(std::ceil(share * all - 1e-9));
    for (const auto& [bucket, content] : ordered) {
      *to = content.sum / static_cast<double>(content.count);
      left -= content.count;
      if (left <= 0) break;
    }
  }
  return result;
}

}  // namespace shardscape::serving
