// Counts the query-key pairs that a causal mask leaves where a token meets the last tokens only (local attention).
#pragma once

#include <algorithm>

namespace shardscape {

/// Pairs of `tokens` queries that follow `before` others, where each meets the last `window` tokens (0: all): the
/// integral over positions x of min(x, window). Tokens need not be whole.
inline double visible_pairs(double before, double tokens, double window) {
  if (window <= 0 || before + tokens <= window) return tokens * (before + 0.5 * tokens);
  // Queries whose whole past is still inside the window.
  const double growing = std::clamp(window - before, 0.0, tokens);
  return growing * (before + 0.5 * growing) + (tokens - growing) * window;
}

/// Share of the tokens^2 pairs of a sequence that the mask leaves: 0.5 without a window, or where it is as long.
inline double visible_share(double tokens, double window) {
  if (window <= 0 || window >= tokens) return 0.5;
  return visible_pairs(0, tokens, window) / (tokens * tokens);
}

}  // namespace shardscape
