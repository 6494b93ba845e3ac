// Speculative decoding (Leviathan et al. 2023, arXiv:2211.17192): before each decode iteration tokens are drafted for
// every sequence, and the iteration verifies them all at once; as many as are accepted are given, and one more.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/enum_names.h"

namespace shardscape {

struct ModelSpec;

/// Who drafts: the model's own module that predicts a further token, run once for each (DeepSeek-V3, arXiv:2412.19437,
/// section 2.2), or a small model.
enum class DraftMethod : std::uint8_t { mtp, draft_model };

inline constexpr std::int64_t kMostDraftTokens = 16;

struct Speculation {
  std::int64_t draft_tokens = 0;  ///< of a sequence and iteration, 0..kMostDraftTokens; 0: nothing is drafted
  /// Share of iterations in which the i-th draft is accepted, and with it all before it; never rising. Index: i - 1; at
  /// least draft_tokens.
  std::vector<double> acceptance;
  DraftMethod method = DraftMethod::mtp;
  std::shared_ptr<const ModelSpec> draft_model;  ///< of that method alone

  /// Each draft is accepted with probability `rate`, if those before it are: a, a^2, a^3, ...
  static std::vector<double> independent(double rate) {
    std::vector<double> shares;
    for (double share = rate; shares.size() < kMostDraftTokens; share *= rate) shares.push_back(share);
    return shares;
  }
  /// Tokens of a sequence that an iteration works on.
  [[nodiscard]] std::int64_t verified() const { return 1 + draft_tokens; }
  friend bool operator==(const Speculation&, const Speculation&) = default;
};

}  // namespace shardscape
