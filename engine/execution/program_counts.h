// Numbers that an execution will count, computed from the programs: every program that ends has executed all of itself.
#pragma once

#include <cstdint>

#include "engine/execution/program.h"

namespace shardscape::execution {

struct ProgramCounts {
  std::int64_t operators = 0;  ///< compute instructions
  std::int64_t entries = 0;    ///< entries of members into calls
  std::int64_t messages = 0;   ///< messages received
  std::int64_t drained = 0;    ///< messages among them that went over links

  [[nodiscard]] std::int64_t events() const { return operators + entries + messages + drained; }
};

/// Counts without executing. O(length of the sequences + gates of all calls + ranks * kinds of calls).
ProgramCounts count(const Programs& programs);

/// Roughly the number of numbers in the programs, for the cost of a pass over them.
std::int64_t size_of(const Programs& programs);

}  // namespace shardscape::execution
