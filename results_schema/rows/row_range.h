// Ranges of consecutive rows of a table.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace shardscape::results {

/// Rows [begin, end) of the table; an end past the last row means the last row.
struct RowRange {
  std::uint64_t begin = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
};

/// Adds a row behind all rows of ascending ranges.
inline void append_row(std::vector<RowRange>& ranges, std::uint64_t row) {
  if (ranges.empty() || ranges.back().end != row) ranges.push_back({row, row});
  ranges.back().end = row + 1;
}

}  // namespace shardscape::results
