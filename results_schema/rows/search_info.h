// What happened to the points of a study that was searched; stored in the file of those that were visited.
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/enum_names.h"

namespace shardscape::results {

/// visited: the point is a row of the file. open: it was not decided when the search stopped. Otherwise it was cut off
/// together with a region in which no point is as good as the answer (bound), fits in memory (memory), satisfies the
/// constraints (constraint) or divides as it must (rule).
enum class Fate : std::uint8_t { visited, bound, memory, constraint, rule, open };

using FateCounts = std::array<std::uint64_t, enum_names<Fate>().size()>;

struct SearchInfo {
  FateCounts counts{};    ///< number of points by Fate; they add up to the points of the study
  bool complete = false;  ///< whether every region was visited or cut off
  double within = 0;      ///< relative amount by which the answer may be worse than the best
  /// No point that was not visited has a better value of the bounded objective (on a front beside memory_peak_bytes,
  /// the other one); NaN where all were visited or cannot be results.
  double bound = 0;
  friend bool operator==(const SearchInfo&, const SearchInfo&) = default;
};

}  // namespace shardscape::results
