// The source of a step's execution traces, rank by rank, so that a whole machine's traces need not be in memory at
// once.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/timeline/execution_trace.h"

namespace shardscape::timeline {

class TraceSource {
 public:
  virtual ~TraceSource() = default;

  [[nodiscard]] virtual std::int32_t ranks() const = 0;
  /// The process groups, named by their purpose and numbered by their lowest ranks: "tensor 0", "context 3", "data 1".
  [[nodiscard]] virtual const std::vector<ProcessGroup>& groups() const = 0;
  [[nodiscard]] virtual RankTrace rank(std::int32_t rank) const = 0;

  /// The traces of all ranks at once.
  [[nodiscard]] ExecutionTrace all() const {
    ExecutionTrace trace;
    trace.groups = groups();
    for (std::int32_t r = 0; r < ranks(); ++r) trace.ranks.push_back(rank(r));
    return trace;
  }
};

}  // namespace shardscape::timeline
