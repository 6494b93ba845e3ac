// Selects percentiles among arithmetic progressions: a sample suggests limits for each, one pass takes out what lies
// between them; the values on the wrong side of further limits are dropped until few are left, and these are listed and
// selected from.
#include "engine/serving/percentile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
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
    std::int64_t most = static_cast<std::int64_t>((limit - values.first) / values.step) + 1;
    most = std::clamp(most, begin + 1, end - 1);
    while (at(most - 1) > limit) --most;  // rounding
    while (at(most) <= limit) ++most;
    return most;
  }
  /// The most different values among them.
  [[nodiscard]] std::int64_t different() const { return values.step > 0 ? end - begin : 1; }
};

/// The same values in ascending order.
Progression ascending(const Progression& p) {
  return p.step < 0 ? Progression{p.last(), -p.step, p.count, p.weight} : p;
}

std::int64_t rank_at(double share, std::int64_t total) {
  const auto rank = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(total) - 1e-9));
  return std::clamp<std::int64_t>(rank, 1, total);
}

/// Finds the value at a rank, counted by weight, among progressions that do not fall.
class Selection {
 public:
  Selection(const std::vector<Progression>& values, double share) {
    open_.reserve(values.size());
    for (const Progression& p : values) add({ascending(p), 0, p.count});
    rank_ = rank_at(share, weight_);
  }
  /// Nothing yet, to which parts of progressions are added.
  Selection() = default;
  void add(const Open& part) {
    open_.push_back(part);
    weight_ += part.values.weight * (part.end - part.begin);
    different_ += part.different();
  }
  [[nodiscard]] std::int64_t weight() const { return weight_; }
  void look_for(std::int64_t rank) { rank_ = rank; }

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

/// Limits between which the ranks of some shares lie, most likely: around their places in a sample of the values.
class Brackets {
 public:
  Brackets(const std::vector<Progression>& values, std::span<const double> shares) {
    for (const Progression& p : values) total_ += p.count * p.weight;
    // Every so many of all values in listed order.
    const double stride = static_cast<double>(total_) / kSample;
    std::vector<double> sample;
    double passed = 0, next = 0.5 * stride;
    for (const Progression& p : values) {
      const auto each = static_cast<double>(p.weight);
      const double end = passed + each * static_cast<double>(p.count);
      for (; next < end && sample.size() < kSample; next += stride)
        sample.push_back(p.first + p.step * std::floor((next - passed) / each));
      passed = end;
    }
    std::ranges::sort(sample);
    const auto at = [&](double place, double beyond) {
      return place < 0 || place >= static_cast<double>(sample.size())
                 ? beyond
                 : sample[static_cast<std::size_t>(place)];
    };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const double share : shares) {
      const double place = share * kSample, margin = 2 + 2 * std::sqrt(kSample * share * (1 - share));
      parts_.push_back({share, at(place - margin, -kInfinity), at(place + margin, kInfinity), 0, {}});
    }
  }

  /// Deals out what lies between the limits, in one pass.
  void part(const std::vector<Progression>& values) {
    for (const Progression& p : values) {
      const Progression up = ascending(p);
      const Open all{up, 0, up.count};
      const double last = all.at(up.count - 1);
      for (Part& part : parts_) {
        if (up.first > part.high) continue;
        const std::int64_t low = last <= part.low ? up.count : all.above(part.low);
        part.below += up.weight * low;
        if (low == up.count) continue;
        const std::int64_t high = last <= part.high ? up.count : all.above(part.high);
        if (high > low) part.between.add({up, low, high});
      }
    }
  }

  /// The value of a share; `values`: where it does not lie between its limits.
  double value(std::size_t share, const std::vector<Progression>& values) {
    Part& part = parts_[share];
    const std::int64_t rank = rank_at(part.share, total_) - part.below;
    if (rank < 1 || rank > part.between.weight()) return Selection(values, part.share).value();
    part.between.look_for(rank);
    return part.between.value();
  }

 private:
  static constexpr std::size_t kSample = 256;
  struct Part {
    double share, low, high;
    std::int64_t below;  ///< weight of the values up to `low`
    Selection between;
  };
  std::int64_t total_ = 0;
  std::vector<Part> parts_;
};

/// The same of progressions of one value each, by sorting these; `shares` ascend.
void from_sorted(const std::vector<Progression>& values, std::span<const double> shares,
                 std::span<double> to) {
  std::vector<std::pair<double, std::int64_t>> sorted;  // and how often each comes
  sorted.reserve(values.size());
  std::int64_t total = 0;
  for (const Progression& p : values) {
    sorted.emplace_back(p.first, p.weight * p.count);
    total += sorted.back().second;
  }
  std::ranges::sort(sorted, {}, &std::pair<double, std::int64_t>::first);
  auto at = sorted.begin();
  std::int64_t up_to = at->second;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    for (const std::int64_t rank = rank_at(shares[i], total); up_to < rank;) up_to += (++at)->second;
    to[i] = at->first;
  }
}

}  // namespace

void percentiles(const std::vector<Progression>& values, std::span<const double> shares,
                 std::span<double> to) {
  // Few values are not worth a sample, and single ones are sorted sooner than parted.
  constexpr std::size_t kFew = 512, kSorted = 4096;
  const auto single = [](const Progression& p) { return p.count == 1 || p.step == 0; };
  if (values.empty()) {
    std::ranges::fill(to, 0);
  } else if (values.size() < kSorted && std::ranges::all_of(values, single)) {
    from_sorted(values, shares, to);
  } else if (values.size() < kFew) {
    for (std::size_t i = 0; i < shares.size(); ++i) to[i] = Selection(values, shares[i]).value();
  } else {
    Brackets brackets(values, shares);
    brackets.part(values);
    for (std::size_t i = 0; i < shares.size(); ++i) to[i] = brackets.value(i, values);
  }
}

double percentile(const std::vector<Progression>& values, double share) {
  double value = 0;
  percentiles(values, {&share, 1}, {&value, 1});
  return value;
}

namespace {

double mean_of(const std::vector<Progression>& values) {
  double sum = 0, number = 0;
  for (const Progression& v : values) {
    const double count = static_cast<double>(v.weight) * static_cast<double>(v.count);
    sum += 0.5 * count * (v.first + v.last());
    number += count;
  }
  return number > 0 ? sum / number : 0;
}

}  // namespace

Spread spread_of(const std::vector<Progression>& values) {
  std::array<double, 2> at{};
  percentiles(values, std::array{0.5, 0.95}, at);
  return {mean_of(values), at[0], at[1]};
}

Percentiles percentiles_of(const std::vector<Progression>& values) {
  Percentiles p;
  p.mean = mean_of(values);
  std::array<double, 4> at{};
  percentiles(values, std::array{0.5, 0.9, 0.95, 0.99}, at);
  p.p50 = at[0], p.p90 = at[1], p.p95 = at[2], p.p99 = at[3];
  return p;
}

}  // namespace shardscape::serving
