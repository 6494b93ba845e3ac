// Execution traces out of the programs that an executor runs, rank by rank, so that those of a whole machine need not
// be in memory at once: replayed with the same stack on the same fabric they take the same time.
//
//   compute        a node on the device; operators with nothing between them are one
//   launch         a node on the host, behind the last one and behind where host and device met; the device
//                  goes on behind both
//   calls          collectives of the communicator's process group, each behind the last on its lane and what
//                  the device had done when it was started; passes round a ring are a send and a receive, exchanges
//                  in unequal parts a send to and a receive from each other member
//   channels       sends behind what the device had done; receives wait for their message only
//   join, sent     what follows waits for the lane's last call, for the receipt of what was sent
//
// Lanes and channels have connections of their own (TraceNode::channel).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/execution/program.h"
#include "engine/timeline/execution_trace.h"

namespace shardscape::timeline {

class ProgramExport {
 public:
  /// `programs` must outlive the object. `before`: seconds of the host before everything else.
  ProgramExport(const execution::Programs& programs, double before);

  [[nodiscard]] std::int32_t ranks() const { return programs_.ranks; }
  /// The process groups, named by their purpose and numbered by their lowest ranks: "tensor 0", "context 3", "data 1".
  [[nodiscard]] const std::vector<ProcessGroup>& groups() const { return groups_; }
  [[nodiscard]] RankTrace rank(std::int32_t rank) const;
  /// The traces of all ranks at once.
  [[nodiscard]] ExecutionTrace all() const;

 private:
  const execution::Programs& programs_;
  double before_;
  std::vector<ProcessGroup> groups_;  ///< one per communicator
};

}  // namespace shardscape::timeline
