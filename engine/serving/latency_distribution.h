// Mean and percentiles of values of which there may be any number, in bounded memory: so many are kept as they are, and
// percentiles of these are exact; from then on all are counted in buckets 1/4096 of an octave wide and wider, by the
// leading bits of the number; a percentile is the mean of its bucket, off by 2^-12 of it at most. The mean is exact.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/serving/percentile.h"

namespace shardscape::serving {

class LatencyDistribution {
 public:
  static constexpr std::size_t kKept = 1 << 17;

  /// `kept`: values, and progressions, that are kept as they are.
  explicit LatencyDistribution(std::size_t kept) : kept_(kept) {}
  LatencyDistribution() = default;

  void add(double value) {
    if (!buckets_.empty()) return spread({value, 0, 1, 1});
    values_.push_back(value);
    if (values_.size() > kept_) spill();
  }
  /// Of one distribution either values or progressions are added.
  void add(const Progression& values) {
    if (!buckets_.empty()) return spread(values);
    progressions_.push_back(values);
    if (progressions_.size() > kept_) spill();
  }
  /// How many values there are.
  [[nodiscard]] std::int64_t count() const;
  /// Zeros where there are none. The order of kept values may change.
  [[nodiscard]] Percentiles percentiles();

 private:
  struct Bucket {
    std::int64_t count = 0;
    double sum = 0;
  };
  void spill();
  void spread(Progression values);

  std::size_t kept_ = kKept;
  std::vector<double> values_;
  std::vector<Progression> progressions_;
  std::unordered_map<std::uint64_t, Bucket> buckets_;
};

}  // namespace shardscape::serving
