// How fused attention over a prompt is cut into blocks of queries, which read the keys that they see in steps.
#pragma once

#include <algorithm>
#include <cmath>

#include "engine/compute/gemm.h"

namespace shardscape::compute {

constexpr double kFewestRows = 64;  ///< queries per block where a sequence has at most this many
constexpr double kKeysOfOneStep = 64;

struct PromptBlocks {
  double rows = 0;    ///< queries of a block
  double blocks = 0;  ///< number of blocks, over all heads and sequences
  double seen = 0;    ///< keys that a block reads, on average
  double most = 0;    ///< keys that the longest block reads
};

/// Cuts a prompt into blocks of at most `most_rows` queries, of fewer where the prompt is short.
template <class Shape>
PromptBlocks prompt_blocks(const Shape& s, double most_rows) {
  PromptBlocks out;
  out.rows = s.queries <= kFewestRows       ? kFewestRows
             : s.queries <= 2 * kFewestRows ? 2 * kFewestRows
                                            : most_rows;
  out.blocks = s.batch * s.heads * std::ceil(s.queries / out.rows);
  const double keys = kKeysOfOneStep * std::ceil(s.keys / kKeysOfOneStep);
  // Rows of a block see keys up to its last row and from its first on: half a block more than the mask leaves, each.
  out.seen = std::min(keys, s.visible * keys + (1 - s.visible) * out.rows);
  // A window of w of n keys leaves w / n - (w / n)^2 / 2 of their pairs.
  const double window = s.visible < 0.5 ? keys * (1 - std::sqrt(1 - 2 * s.visible)) + out.rows : keys;
  out.most = std::min(keys, window);
  return out;
}

/// What bounds such a kernel, in seconds: its call and the start of a block, before any work; the blocks, with their
/// starts; or the stream.
inline Bound bound_of_blocks(double call, double start, double blocks, double stream) {
  if (call + start > std::max(blocks - start, stream)) return Bound::launch;
  return stream > blocks ? Bound::hbm : Bound::compute;
}

}  // namespace shardscape::compute
