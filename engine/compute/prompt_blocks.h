// How fused attention over a prompt is cut into blocks of queries, which read the keys that they see in steps.
#pragma once

#include <algorithm>
#include <cmath>

namespace shardscape::compute {

constexpr double kFewestRows = 64;  ///< queries per block where a sequence has at most this many
constexpr double kKeysOfOneStep = 64;

struct PromptBlocks {
  double rows = 0;    ///< queries of a block
  double blocks = 0;  ///< number of blocks, over all heads and sequences
  double keys = 0;    ///< keys of a sequence, rounded up to whole steps
  double seen = 0;    ///< keys that a block reads, on average
};

/// Cuts a prompt into blocks of at most `most_rows` queries, of fewer where the prompt is short.
template <class Shape>
PromptBlocks prompt_blocks(const Shape& s, double most_rows) {
  PromptBlocks out;
  out.rows = s.queries <= kFewestRows       ? kFewestRows
             : s.queries <= 2 * kFewestRows ? 2 * kFewestRows
                                            : most_rows;
  out.blocks = s.batch * s.heads * std::ceil(s.queries / out.rows);
  out.keys = kKeysOfOneStep * std::ceil(s.keys / kKeysOfOneStep);
  // Rows of a block see keys up to the block's last row: half a block more than the mask leaves.
  out.seen = std::min(out.keys, s.visible * out.keys + (1 - s.visible) * out.rows);
  return out;
}

}  // namespace shardscape::compute
