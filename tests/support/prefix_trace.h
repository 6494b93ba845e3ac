// Random traces that say with which tokens requests begin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/spec/request_load.h"

namespace shardscape::test {

/// Requests of which many begin as an earlier one does.
inline Trace random_trace(CounterRng& rng, std::int64_t requests, std::int64_t longest) {
  Trace trace;
  trace.piece_begin.push_back(0);
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < requests; ++i) {
    const auto prompt = static_cast<std::int32_t>(1 + rng.below(static_cast<std::uint64_t>(longest)));
    const auto output = static_cast<std::int32_t>(1 + rng.below(8));
    trace.requests.push_back({0.01 * static_cast<double>(i), prompt, output});
    if (i > 0 && rng.below(4) > 0) {
      const auto parent = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(i)));
      const std::int64_t most = std::min<std::int64_t>(prompt, lengths[static_cast<std::size_t>(parent)]);
      const auto end = static_cast<std::int64_t>(1 + rng.below(static_cast<std::uint64_t>(most)));
      const std::size_t first = trace.piece_begin[static_cast<std::size_t>(parent)];
      const std::size_t stop = trace.piece_begin[static_cast<std::size_t>(parent) + 1];
      std::int64_t last = 0;
      for (std::size_t p = first; p < stop && last < end; ++p) {
        const PrefixPiece piece = trace.pieces[p];
        last = std::min(piece.end, end);
        trace.pieces.push_back({piece.owner, last});
      }
      if (last < end) trace.pieces.push_back({parent, end});
    }
    lengths.push_back(prompt + output);
    trace.piece_begin.push_back(trace.pieces.size());
  }
  trace.prompt = {LengthLaw::trace, static_cast<double>(longest) / 2, 1, 0, longest, 1};
  trace.output = {LengthLaw::trace, 4, 1, 0, 8, 1};
  return trace;
}

}  // namespace shardscape::test
