// How many tokens each expert gets: what a router makes of a batch, and what falls to one rank.
//
//   balanced   every expert as many as any other, give or take one
//   power law  x = ((hi^(1-a) - lo^(1-a)) u + lo^(1-a))^(1/(1-a)) for each expert, u uniform, scaled so that they
//              add up to tokens x top_k and rounded; lo = 1 and hi = 0.8 tokens, or 0.01 and 2 where there are no
//              more choices than experts. What rounding leaves goes to the largest first, one each.
//
// The power law is that of the benchmark behind the tables of grouped products (AIConfigurator's collector of
// TensorRT-LLM, NVIDIA 2025), which times the rank that has most tokens. A token chooses an expert at most once: no
// expert gets more than all tokens, and the others share the excess. The benchmark does not enforce this.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/spec/expert_load.h"

namespace shardscape::compute {

/// Experts of one rank that got equally many tokens.
struct ExpertRun {
  double experts = 0;
  double tokens = 0;  ///< tokens of each of them
};

/// Tokens of the experts of one rank, as runs of equal ones; balanced loads are a single run.
struct ExpertLoads {
  std::vector<ExpertRun> runs;

  [[nodiscard]] double experts() const;
  [[nodiscard]] double active() const;  ///< number of experts with any token
  /// Tokens of all experts together: a token counts once for each expert that takes it.
  [[nodiscard]] double tokens() const;
};

/// How popular each expert is with a router: the share of tokens that choose it, 0 to 1, adding up to top_k.
///   power_law   the quantiles above at one uniform number for each expert, drawn by the load's seed, between the
///               ends of a batch of kDrawnTokens: popularity is the router's, whatever the batch
///   histogram   in proportion to its entries
/// A token chooses an expert once: what would exceed 1 goes to the others in proportion. `load` must pass its checks.
/// O(n log n) in experts.
std::vector<double> popularity(const ExpertLoad& load, std::int64_t experts, std::int64_t top_k);
/// Tokens of the batch whose law is drawn: a middle value of the tables of grouped products.
inline constexpr double kDrawnTokens = 4096;

/// Share of all copies of tokens that goes to each of `members` members of a group, which hold equally many experts
/// each, in order.
std::vector<double> member_shares(std::span<const double> popularity, std::size_t members);

/// Expected loads of experts of these popularities in a batch of `tokens` tokens: an expert counts with its chance of
/// being chosen at all, and with its mean tokens where it is. Most tokens first.
ExpertLoads expected_loads(std::span<const double> popularity, double tokens);

/// A batch and its router: `tokens` tokens choose `top_k` of `experts` experts each; top_k <= experts, all >= 1.
struct Routing {
  std::int64_t tokens = 1, top_k = 1, experts = 1;
};

/// Tokens of each expert under balanced routing; they add up to tokens x top_k, and none exceeds `tokens`.
std::vector<std::int64_t> balanced_tokens(const Routing& routing);
/// As balanced_tokens(), but under a power law with exponent >= 0; draws 2 numbers for each expert. O(n log n) in
/// experts.
std::vector<std::int64_t> power_law_tokens(const Routing& routing, double exponent, CounterRng& random);

/// Loads of the rank with most tokens where experts are laid out in order over `ranks` ranks, which divide their
/// number.
ExpertLoads busiest_rank(std::span<const std::int64_t> tokens, std::int64_t ranks);

}  // namespace shardscape::compute
