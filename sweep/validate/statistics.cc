#include "sweep/validate/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "engine/base/check.h"

namespace shardscape::validate {

namespace {

std::optional<double> share(std::size_t part, std::size_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Ranks of the values, counted from 0; equal values share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = 0.5 * static_cast<double>(begin + end - 1);
    for (std::size_t i = begin; i < end; ++i) result[order[i]] = rank;
  }
  return result;
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  SHARDSCAPE_CHECK(!sorted.empty() && q >= 0 && q <= 1, sorted.size(), q);
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

ErrorStatistics error_statistics(std::span<const Pair> pairs) {
  ErrorStatistics result;
  if (pairs.empty()) return result;
  std::vector<double> errors;
  for (const Pair& pair : pairs) {
    errors.push_back(std::abs(pair.error()));
    result.bias += pair.error() / static_cast<double>(pairs.size());
  }
  std::ranges::sort(errors);
  result.n = errors.size();
  result.mean = mean(errors);
  result.median = quantile(errors, 0.5);
  result.p90 = quantile(errors, 0.9);
  result.max = errors.back();
  return result;
}

void OomStatistics::add(bool measured, bool predicted) {
  if (measured) {
    ++(predicted ? true_positive : false_negative);
  } else {
    ++(predicted ? false_positive : true_negative);
  }
}

std::optional<double> OomStatistics::accuracy() const { return share(true_positive + true_negative, n()); }
std::optional<double> OomStatistics::precision() const {
  return share(true_positive, true_positive + false_positive);
}
std::optional<double> OomStatistics::recall() const {
  return share(true_positive, true_positive + false_negative);
}

std::optional<double> spearman(std::span<const Pair> pairs) {
  if (pairs.size() < 2) return std::nullopt;
  std::vector<double> measured, predicted;
  for (const Pair& pair : pairs) {
    measured.push_back(pair.measured);
    predicted.push_back(pair.predicted);
  }
  const std::vector<double> a = ranks(measured), b = ranks(predicted);
  const double middle = mean(a);  // the mean of both lists, as they hold the same ranks (with ties averaged)
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - middle) * (b[i] - middle);
    aa += (a[i] - middle) * (a[i] - middle);
    bb += (b[i] - middle) * (b[i] - middle);
  }
  if (aa == 0 || bb == 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

double regret(std::span<const Pair> pairs) {
  SHARDSCAPE_CHECK(!pairs.empty(), pairs.size());
  const auto chosen = std::ranges::min_element(pairs, {}, &Pair::predicted);
  const auto best = std::ranges::min_element(pairs, {}, &Pair::measured);
  return chosen->measured / best->measured;
}

RankingStatistics ranking_statistics(std::span<const Pair> pairs, std::span<const int> group_of) {
  std::map<int, std::vector<Pair>> groups;
  for (const Pair& pair : pairs) {
    if (group_of[pair.row] >= 0) groups[group_of[pair.row]].push_back(pair);
  }
  std::vector<double> correlations, regrets;
  for (const auto& [number, members] : groups) {
    if (members.size() < RankingStatistics::kSmallestGroup) continue;
    if (const auto correlation = spearman(members)) correlations.push_back(*correlation);
    regrets.push_back(regret(members));
  }
  RankingStatistics result;
  result.groups = regrets.size();
  if (!correlations.empty()) result.spearman = mean(correlations);
  if (!regrets.empty()) {
    result.regret_mean = mean(regrets);
    result.regret_max = *std::ranges::max_element(regrets);
  }
  return result;
}

}  // namespace shardscape::validate
