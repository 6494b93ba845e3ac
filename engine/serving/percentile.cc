#include "engine/serving/percentile.h"

#include <algorithm>
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

double percentile(std::vector<Progression> values, double share) {
  if (values.empty()) return 0;
  double low = values.front().first, high = low;
  std::int64_t total = 0;
  for (Progression& p : values) {
    if (p.step < 0) p = {p.last(), -p.step, p.count, p.weight};  // the same values the other way round
    low = std::min(low, p.first);
    high = std::max(high, p.last());
    total += p.count * p.weight;
  }
  // `rank` values of those left do not exceed the answer, which lies in (low, high] or is `low` itself.
  auto rank = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(total) - 1e-9));
  rank = std::clamp<std::int64_t>(rank, 1, total);
  const auto count_at_most = [&](double limit) {
    std::int64_t sum = 0;
    for (const Progression& p : values) sum += p.weight * p.at_most(limit);
    return sum;
  };
  if (count_at_most(low) >= rank) return low;
  const double tolerance = 1e-13 * high;
  while (high - low > tolerance) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    if (count_at_most(middle) >= rank) {
      high = middle;
    } else {
      low = middle;
    }
    std::erase_if(values, [&](const Progression& p) {
      if (p.last() <= low) {
        rank -= p.count * p.weight;
        return true;
      }
      return p.first > high;
    });
  }
  return high;
}

}  // namespace shardscape::serving
