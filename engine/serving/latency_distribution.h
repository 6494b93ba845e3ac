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

  /// Of one distribution either values or progressions are added; each comes `times` times.
  void add(double value, std::int64_t times = 1) {
    if (times != 1 || !progressions_.empty() || !buckets_.empty()) {
      weigh();
      return add(Progression{value, 0, 1, 1}, times);
    }
    ++added_;
    values_.push_back(value);
    if (values_.size() > kept_) spill();
  }
  void add(Progression values, std::int64_t times = 1) {
    if (times == 0) return;
    values.weight *= times;
    added_ += times;
    if (!buckets_.empty()) return spread(values);
    progressions_.push_back(values);
    if (progressions_.size() > kept_) spill();
  }
  /// What had been added at some moment.
  struct Mark {
    std::size_t size = 0;
    std::int64_t added = 0;
  };
  [[nodiscard]] Mark mark() const { return {values_.size() + progressions_.size(), added_}; }
  /// Whether values are known one by one no more.
  [[nodiscard]] bool spilt() const { return !buckets_.empty(); }
  /// What has been added since then is added so many times more; not once values are spilt.
  void repeat(const Mark& since, std::int64_t times);
  /// How many values there are.
  [[nodiscard]] std::int64_t count() const;
  /// Zeros where there are none. The order of kept values may change.
  [[nodiscard]] Percentiles percentiles();

 private:
  struct Bucket {
    std::int64_t count = 0;
    double sum = 0;
  };
  /// Values are kept as progressions of one.
  void weigh();
  void spill();
  void spread(Progression values);

  std::size_t kept_ = kKept;
  std::int64_t added_ = 0;  ///< values and progressions, each as often as it came
  std::vector<double> values_;
  std::vector<Progression> progressions_;
  std::unordered_map<std::uint64_t, Bucket> buckets_;
};

}  // namespace shardscape::serving
