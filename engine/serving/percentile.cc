// Selects a percentile among arithmetic progressions: a sample suggests limits, the values on the wrong side are
// dropped until few are left, and these are listed and selected from.
#include "engine/serving/percentile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/nearest_rank.h"

namespace shardscape::serving {

namespace {

/// Mean and, of ascending shares, percentiles of values, which are reordered.
template <std::size_t kCount>
double mean_and_ranks(std::vector<double>& values,
                      const std::array<std::pair<double, double*>, kCount>& ranks) {
  if (values.empty()) return 0;
  double mean = 0;
  for (const double value : values) mean += value;
  auto begin = values.begin();  // values from here on are no less than the one found last
  for (const auto& [share, to] : ranks) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(nearest_rank_index(values.size(), share));
    std::nth_element(begin, at, values.end());
    begin = at;
    *to = *at;
  }
  return mean / static_cast<double>(values.size());
}

}  // namespace

Spread spread_of(std::vector<double>& values) {
  Spread s;
  s.mean = mean_and_ranks<2>(values, {{{0.5, &s.p50}, {0.95, &s.p95}}});
  return s;
}

Percentiles percentiles_of(std::vector<double>& values) {
  Percentiles p;
  p.mean = mean_and_ranks<4>(values, {{{0.5, &p.p50}, {0.9, &p.p90}, {0.95, &p.p95}, {0.99, &p.p99}}});
  return p;
}

namespace {

/// The part [begin, end) of a progression that may still hold the answer.
struct Open {
  Progression values;
  std::int64_t begin = 0, end = 0;
  std::int64_t low = 0, high = 0;  ///< first values that exceed the lower and the upper limit

  [[nodiscard]] double at(std::int64_t i) const {
    return values.first + values.step * static_cast<double>(i);
  }
  /// Index of the first value that exceeds the limit.
  [[nodiscard]] std::int64_t above(double limit) const {
    if (at(begin) > limit) return begin;
    if (at(end - 1) <= limit) return end;
    const auto most = static_cast<std::int64_t>((limit - values.first) / values.step) + 1;
    return std::clamp(most, begin + 1, end - 1);
  }
  /// The most different values among them.
  [[nodiscard]] std::int64_t different() const { return values.step > 0 ? end - begin : 1; }
};

/// Finds the value at a rank, counted by weight, among progressions that do not fall.
class Selection {
 public:
  Selection(std::vector<Progression>& values, double share) {
    std::int64_t total = 0;
    open_.reserve(values.size());
    for (Progression& p : values) {
      if (p.step < 0) p = {p.last(), -p.step, p.count, p.weight};  // the same values in ascending order
      open_.push_back({p, 0, p.count});
      total += p.count * p.weight;
      different_ += open_.back().different();
    }
    weight_ = total;
    rank_ = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(total) - 1e-9));
    rank_ = std::clamp<std::int64_t>(rank_, 1, total);
  }

  double value() {
    // As many values as there are progressions cost no more to list than another round. Rounds end by themselves; the
    // bound is for values so close that rounding keeps a middle from separating them.
    constexpr int kMostRounds = 100;
    for (int round = 0; round < kMostRounds && different_ > static_cast<std::int64_t>(open_.size());
         ++round) {
      part(round % 3 == 2 ? middle() : guess());
    }
    return select();
  }

 private:
  struct Weighted {
    double value = 0;
    std::int64_t weight = 1;
  };
  /// The answer is looked for above `low` and up to `high`.
  struct Limits {
    double low = 0, high = 0;
  };

  [[nodiscard]] Limits middle() const {
    double low = open_.front().at(open_.front().begin), high = low;
    for (const Open& p : open_) {
      low = std::min(low, p.at(p.begin));
      high = std::max(high, p.at(p.end - 1));
    }
    const double middle = low + 0.5 * (high - low);
    return {middle, middle};
  }

  /// Limits on both sides of the rank's place in a sample, which takes every so many of all values in listed order.
  [[nodiscard]] Limits guess() const {
    constexpr std::size_t kSample = 64;
    // Places in the sample; less than twice the deviation of the median's place.
    constexpr double kMargin = 5;
    std::array<double, kSample> sample;
    const double stride = static_cast<double>(weight_) / kSample;
    std::size_t size = 0;
    double passed = 0, next = 0.5 * stride;
    for (const Open& p : open_) {
      const auto each = static_cast<double>(p.values.weight);
      const double end = passed + each * static_cast<double>(p.end - p.begin);
      for (; next < end && size < kSample; next += stride)
        sample[size++] =
            p.at(std::min(p.begin + static_cast<std::int64_t>((next - passed) / each), p.end - 1));
      passed = end;
    }
    const auto end = sample.begin() + static_cast<std::ptrdiff_t>(size);
    std::sort(sample.begin(), end);
    const double place = static_cast<double>(rank_) / stride;
    const double below = place - kMargin, above = place + kMargin;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {below < 0 ? -kInfinity : sample[std::min(static_cast<std::size_t>(below), size - 1)],
            above < static_cast<double>(size) ? sample[static_cast<std::size_t>(above)] : kInfinity};
  }

  /// Keeps the values below, between or above the limits, whichever hold the answer.
  void part(const Limits& limits) {
    std::int64_t below = 0, between = 0;
    for (Open& p : open_) {
      p.low = p.above(limits.low);
      p.high = p.above(limits.high);
      below += p.values.weight * (p.low - p.begin);
      between += p.values.weight * (p.high - p.low);
    }
    if (rank_ <= below) {
      keep(below, 0, [](const Open& p) { return Open{p.values, p.begin, p.low}; });
    } else if (rank_ <= below + between) {
      keep(between, below, [](const Open& p) { return Open{p.values, p.low, p.high}; });
    } else {
      keep(weight_ - below - between, below + between, [](const Open& p) {
        return Open{p.values, p.high, p.end};
      });
    }
  }

  /// Keeps `side` of each progression; these weigh `weight` together, and the dropped values below weigh `below`.
  template <class Side>
  void keep(std::int64_t weight, std::int64_t below, Side side) {
    weight_ = weight;
    rank_ -= below;
    different_ = 0;
    std::size_t kept = 0;
    for (const Open& p : open_) {
      const Open left = side(p);
      if (left.begin == left.end) continue;
      different_ += left.different();
      open_[kept++] = left;
    }
    open_.resize(kept);
  }

  [[nodiscard]] double select() const {
    std::vector<Weighted> list;
    list.reserve(static_cast<std::size_t>(different_));
    for (const Open& p : open_) {
      if (p.values.step > 0) {
        for (std::int64_t i = p.begin; i < p.end; ++i) list.push_back({p.at(i), p.values.weight});
      } else {
        list.push_back({p.values.first, p.values.weight * (p.end - p.begin)});
      }
    }
    auto begin = list.begin(), end = list.end();
    for (std::int64_t rank = rank_; end - begin > 1;) {
      const auto half = begin + (end - begin) / 2;
      std::nth_element(begin, half, end,
                       [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
      std::int64_t below = 0;
      for (auto it = begin; it != half; ++it) below += it->weight;
      if (rank <= below) {
        end = half;
      } else {
        rank -= below;
        begin = half;
        if (rank <= begin->weight) end = begin + 1;
      }
    }
    return begin->value;
  }

  std::vector<Open> open_;
  std::int64_t rank_ = 1, weight_ = 0;  ///< rank and total weight among the values that are left
  std::int64_t different_ = 0;
};

}  // namespace

double percentile(std::vector<Progression> values, double share) {
  return values.empty() ? 0 : Selection(values, share).value();
}

Percentiles percentiles_of(const std::vector<Progression>& values) {
  Percentiles p;
  double sum = 0, number = 0;
  for (const Progression& v : values) {
    const double count = static_cast<double>(v.weight) * static_cast<double>(v.count);
    sum += 0.5 * count * (v.first + v.last());
    number += count;
  }
  p.mean = number > 0 ? sum / number : 0;
  p.p50 = percentile(values, 0.5);
  p.p90 = percentile(values, 0.9);
  p.p95 = percentile(values, 0.95);
  p.p99 = percentile(values, 0.99);
  return p;
}

}  // namespace shardscape::serving
