// Execution traces of a training step, rank by rank, out of its program.
//
// A rank's device runs one thing at a time: every node depends on the one before it. Beside that chain run
// receives, sends where transfers are asynchronous, and what is hidden: communication that the stack
// overlaps starts within the compute step before it, which is cut in two at that point, and the next step
// waits for both. Data-parallel traffic of a pass starts after (1 - data_overlap) of its predicted time,
// buckets of gradients as the step program releases them. Compute steps with no communication between them
// are one node. Passes that run in pairs wait for both inputs and send both outputs, and run one after the other; what
// they hide of each other's exchanges is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/timeline/stage_steps.h"
#include "engine/timeline/trace_source.h"

namespace shardscape::timeline {

class TraceExport : public TraceSource {
 public:
  /// `program` must outlive the object.
  explicit TraceExport(const PricedStep& program);

  [[nodiscard]] std::int32_t ranks() const override {
    return static_cast<std::int32_t>(program_.plan.gpus());
  }
  [[nodiscard]] const std::vector<ProcessGroup>& groups() const override { return groups_; }
  /// The trace of one rank. Ranks of one stage differ only in their peers and groups.
  [[nodiscard]] RankTrace rank(std::int32_t rank) const override;

 private:
  const PricedStep& program_;
  std::vector<ProcessGroup> groups_;
  std::vector<std::vector<std::int32_t>> group_of_;  ///< [kind][rank]: index of the rank's group
};

}  // namespace shardscape::timeline
