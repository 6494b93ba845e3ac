// What became of the points of a study that was searched, for the file of those that were visited.
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/enum_names.h"

namespace shardscape::results {

/// visited: a row of the file. bound, memory, constraint, rule: cut off with its region because no point there is as
/// good as the answer, fits in memory, satisfies the constraints, divides. open: not decided when the search was stopped.
enum class Fate : std::uint8_t { visited, bound, memory, constraint, rule, open };

}  // namespace shardscape::results

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(results::Fate, "visited", "bound", "memory", "constraint", "rule", "open");
}  // namespace shardscape

namespace shardscape::results {

using FateCounts = std::array<std::uint64_t, enum_names<Fate>().size()>;

struct SearchInfo {
  FateCounts counts{};    ///< by Fate; they add up to the points of the study
  bool complete = false;  ///< every region was visited or cut off
  double within = 0;      ///< how much worse than the best the answer may be, relative
  /// No point that was not visited has a better value of the objective with bounds (of a front beside memory_peak_bytes the other one); NaN where all were visited or can't be
  /// results.
  double bound = 0;
  friend bool operator==(const SearchInfo&, const SearchInfo&) = default;
};

}  // namespace shardscape::results
