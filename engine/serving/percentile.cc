#include "engine/serving/percentile.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/nearest_rank.h"

namespace shardscape::serving {

Spread spread_of(std::vector<double>& values) {
  Spread s;
  if (values.empty()) return s;
  for (const double value : values) s.mean += value;
  s.mean /= static_cast<double>(values.size());
  const auto rank = [&](double share) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(nearest_rank_index(values.size(), share));
    std::ranges::nth_element(values, at);
    return *at;
  };
  s.p50 = rank(0.5);
  s.p95 = rank(0.95);
  return s;
}

std::int64_t Progression::at_most(double limit) const {
  if (first > limit) return 0;
  if (last() <= limit) return count;
  return std::clamp<std::int64_t>(static_cast<std::int64_t>((limit - first) / step) + 1, 1, count - 1);
}

namespace {

/// The values of a progression that may still be the answer: those of [begin, end).
struct Open {
  Progression values;
  std::int64_t begin = 0, end = 0;

  [[nodiscard]] double at(std::int64_t i) const {
    return values.first + values.step * static_cast<double>(i);
  }
  [[nodiscard]] double low() const { return at(begin); }
  [[nodiscard]] double high() const { return at(end - 1); }
  /// Where those begin that exceed the limit.
  [[nodiscard]] std::int64_t above(double limit) const {
    return std::clamp(values.at_most(limit), begin, end);
  }
  /// How many of them may differ.
  [[nodiscard]] std::int64_t different() const { return values.step > 0 ? end - begin : 1; }
};

/// The value of some rank, by weight, among those of progressions that do not fall.
class Selection {
 public:
  Selection(std::vector<Progression>& values, double share) {
    std::int64_t total = 0;
    open_.reserve(values.size());
    for (Progression& p : values) {
      if (p.step < 0) p = {p.last(), -p.step, p.count, p.weight};  // the same values the other way round
      open_.push_back({p, 0, p.count});
      total += p.count * p.weight;
      different_ += open_.back().different();
    }
    weight_ = total;
    rank_ = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(total) - 1e-9));
    rank_ = std::clamp<std::int64_t>(rank_, 1, total);
  }

  double value() {
    // As many values as progressions cost no more to list than another round. Rounds end by themselves; the bound is
    // for values so close to each other that rounding keeps a middle from parting them.
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

  [[nodiscard]] double middle() const {
    double low = open_.front().low(), high = low;
    for (const Open& p : open_) {
      low = std::min(low, p.low());
      high = std::max(high, p.high());
    }
    return low + 0.5 * (high - low);
  }

  /// Of some of the progressions' middles the one whose place among them is the rank's among all values.
  [[nodiscard]] double guess() const {
    constexpr std::size_t kSample = 63;
    std::array<double, kSample> sample;
    const std::size_t size = std::min(kSample, open_.size());
    for (std::size_t i = 0; i < size; ++i) {
      const Open& p = open_[i * open_.size() / size];
      sample[i] = 0.5 * (p.low() + p.high());
    }
    const auto place = static_cast<std::size_t>(static_cast<double>(rank_) / static_cast<double>(weight_) *
                                                static_cast<double>(size - 1));
    const auto at = sample.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(sample.begin(), at, sample.begin() + static_cast<std::ptrdiff_t>(size));
    return *at;
  }

  /// Keeps the side of a limit on which the answer lies.
  void part(double limit) {
    std::int64_t below = 0;
    for (const Open& p : open_) below += p.values.weight * (p.above(limit) - p.begin);
    const bool down = rank_ <= below;
    rank_ -= down ? 0 : below;
    weight_ = down ? below : weight_ - below;
    different_ = 0;
    std::size_t kept = 0;
    for (const Open& p : open_) {
      const std::int64_t parting = p.above(limit);
      const Open left = down ? Open{p.values, p.begin, parting} : Open{p.values, parting, p.end};
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
  std::int64_t rank_ = 1, weight_ = 0;  ///< among the open values
  std::int64_t different_ = 0;
};

}  // namespace

double percentile(std::vector<Progression> values, double share) {
  return values.empty() ? 0 : Selection(values, share).value();
}

}  // namespace shardscape::serving
