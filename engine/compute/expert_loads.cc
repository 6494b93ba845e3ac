// Draws or computes how many tokens each expert gets: popularities from a power law or a histogram, whole tokens by
// rounding and evening out, and the runs of equal loads of one rank.
#include "engine/compute/expert_loads.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "engine/base/check.h"

namespace shardscape::compute {

namespace {

/// The largest share of a batch's tokens that the power law gives one expert.
constexpr double kFullestShare = 0.8;

/// The value of the power law between `low` and `high` at quantile u, 0..1.
double power_law_quantile(double u, double exponent, double low, double high) {
  constexpr double kHarmonic = 1e-9;
  const double e = 1 - exponent;
  if (std::abs(e) < kHarmonic) return low * std::pow(high / low, u);
  const double from = std::pow(low, e), to = std::pow(high, e);
  return std::pow(from + (to - from) * u, 1 / e);
}

/// Rounds shares to whole tokens that add up to about `total`; what exceeds `most` goes to the others in proportion to
/// their shares. `order`: experts by falling share.
std::vector<std::int64_t> scaled(const std::vector<double>& shares, const std::vector<std::size_t>& order,
                                 std::int64_t total, std::int64_t most) {
  std::vector<std::int64_t> tokens(shares.size());
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0), left = static_cast<double>(total);
  std::size_t i = 0;
  for (; i < order.size() && left * shares[order[i]] >= static_cast<double>(most) * sum; ++i) {
    tokens[order[i]] = most;
    sum -= shares[order[i]];
    left -= static_cast<double>(most);
  }
  for (; i < order.size(); ++i)
    tokens[order[i]] = std::min<std::int64_t>(std::llround(left * shares[order[i]] / sum), most);
  return tokens;
}

/// Hands out (or takes back) one token at a time in `order` until they add up to `total`. Only rounding is left to make
/// up, so that there are about as many as experts at most.
void even_out(std::vector<std::int64_t>& tokens, const std::vector<std::size_t>& order, std::int64_t most,
              std::int64_t total) {
  std::int64_t missing = total - std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
  for (std::size_t i = 0; missing != 0; i = (i + 1) % order.size()) {
    std::int64_t& one = tokens[order[i]];
    if (missing > 0 && one < most) ++one, --missing;
    if (missing < 0 && one > 0) --one, ++missing;
  }
}

}  // namespace

double ExpertLoads::experts() const {
  double sum = 0;
  for (const ExpertRun& run : runs) sum += run.experts;
  return sum;
}

double ExpertLoads::active() const {
  double sum = 0;
  for (const ExpertRun& run : runs) sum += run.tokens > 0 ? run.experts : 0;
  return sum;
}

double ExpertLoads::tokens() const {
  double sum = 0;
  for (const ExpertRun& run : runs) sum += run.experts * run.tokens;
  return sum;
}

std::vector<double> popularity(const ExpertLoad& load, std::int64_t experts, std::int64_t top_k) {
  SHARDSCAPE_CHECK(top_k >= 1 && top_k <= experts, top_k, experts);
  const auto count = static_cast<std::size_t>(experts);
  const auto chosen = static_cast<double>(top_k);
  if (load.balanced()) return std::vector<double>(count, chosen / static_cast<double>(experts));
  std::vector<double> shares = load.histogram;
  if (load.distribution == LoadDistribution::power_law) {
    CounterRng random(load.seed, 0);
    shares.resize(count);
    for (double& share : shares)
      share = power_law_quantile(random.uniform(), load.exponent, 1, kFullestShare * kDrawnTokens);
  }
  SHARDSCAPE_CHECK(shares.size() == count, shares.size(), count);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0), left = chosen;
  std::vector<double> result(count);
  for (const std::size_t expert : order) {
    const double share = shares[expert];
    result[expert] = sum > 0 ? std::min(1.0, left * share / sum) : 0;
    // Only experts at the limit of 1 leave the rest another proportion of choices and shares.
    if (result[expert] < 1) continue;
    sum -= share;
    left -= 1;
  }
  return result;
}

std::vector<double> member_shares(std::span<const double> popularity, std::size_t members) {
  const std::size_t each = popularity.size() / members;
  SHARDSCAPE_CHECK(each * members == popularity.size(), members, popularity.size());
  const double all = std::accumulate(popularity.begin(), popularity.end(), 0.0);
  std::vector<double> shares;
  for (std::size_t first = 0; first < popularity.size(); first += each) {
    const auto part = popularity.subspan(first, each);
    shares.push_back(std::accumulate(part.begin(), part.end(), 0.0) / all);
  }
  return shares;
}

ExpertLoads expected_loads(std::span<const double> popularity, double tokens) {
  std::vector<double> sorted(popularity.begin(), popularity.end());
  std::ranges::sort(sorted, std::greater<>());
  ExpertLoads loads;
  double last = -1;
  for (const double share : sorted) {
    const double active = 1 - std::pow(1 - share, tokens);
    if (active <= 0) continue;
    if (share != last) loads.runs.push_back({0, tokens * share / active});
    loads.runs.back().experts += active;
    last = share;
  }
  return loads;
}

std::vector<std::int64_t> balanced_tokens(const Routing& routing) {
  SHARDSCAPE_CHECK(routing.top_k >= 1 && routing.top_k <= routing.experts && routing.tokens >= 1,
                   routing.top_k, routing.experts, routing.tokens);
  const std::int64_t choices = routing.tokens * routing.top_k;
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < routing.experts; ++i)
    tokens.push_back((i + 1) * choices / routing.experts - i * choices / routing.experts);
  return tokens;
}

std::vector<std::int64_t> power_law_tokens(const Routing& routing, double exponent, CounterRng& random) {
  SHARDSCAPE_CHECK(routing.top_k >= 1 && routing.top_k <= routing.experts && routing.tokens >= 1,
                   routing.top_k, routing.experts, routing.tokens);
  const std::int64_t choices = routing.tokens * routing.top_k;
  const bool many = choices > routing.experts;
  const double low = many ? 1 : 0.01;
  const double high = many ? std::max(low, kFullestShare * static_cast<double>(routing.tokens)) : 2;

  const auto experts = static_cast<std::size_t>(routing.experts);
  std::vector<double> shares(experts);
  std::vector<std::uint64_t> keys(experts);
  for (std::size_t i = 0; i < experts; ++i) {
    shares[i] = power_law_quantile(random.uniform(), exponent, low, high);
    keys[i] = random.bits();
  }
  std::vector<std::size_t> order(experts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  std::vector<std::int64_t> tokens = scaled(shares, order, choices, routing.tokens);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(-tokens[a], keys[a]) < std::pair(-tokens[b], keys[b]);
  });
  even_out(tokens, order, routing.tokens, choices);
  return tokens;
}

ExpertLoads busiest_rank(std::span<const std::int64_t> tokens, std::int64_t ranks) {
  const auto all = static_cast<std::int64_t>(tokens.size());
  SHARDSCAPE_CHECK(ranks >= 1 && all >= ranks && all % ranks == 0, ranks, all);
  const auto per_rank = static_cast<std::size_t>(all / ranks);
  std::span<const std::int64_t> busiest;
  std::int64_t most = -1;
  for (std::size_t first = 0; first < tokens.size(); first += per_rank) {
    const auto part = tokens.subspan(first, per_rank);
    const std::int64_t sum = std::accumulate(part.begin(), part.end(), std::int64_t{0});
    if (sum > most) most = sum, busiest = part;
  }
  std::vector<std::int64_t> sorted(busiest.begin(), busiest.end());
  std::ranges::sort(sorted, std::greater<>());
  ExpertLoads loads;
  for (const std::int64_t one : sorted) {
    const auto count = static_cast<double>(one);
    if (loads.runs.empty() || loads.runs.back().tokens != count) loads.runs.push_back({0, count});
    loads.runs.back().experts += 1;
  }
  return loads;
}

}  // namespace shardscape::compute
