// What an execution will count, told from the programs: every program that ends has executed all of itself.
#pragma once

#include <cstdint>

#include "engine/execution/program.h"

namespace shardscape::execution {

struct ProgramCounts {
  std::int64_t operators = 0;  ///< compute instructions
  std::int64_t entries = 0;    ///< of members into calls
  std::int64_t messages = 0;   ///< received
  std::int64_t drained = 0;    ///< of them, those that went over links

  [[nodiscard]] std::int64_t events() const { return operators + entries + messages + drained; }
};

/// O(length of the sequences + gates of all calls + ranks * kinds of calls).
ProgramCounts count(const Programs& programs);

/// Numbers that stand in the programs, roughly: what a pass over them reads.
std::int64_t size_of(const Programs& programs);

}  // namespace shardscape::execution
