// The data-parallel traffic of one stage of one replica, before any of it is hidden.
#pragma once

#include <boost/container/static_vector.hpp>

#include "engine/network/prices/collective_setup.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

struct DataTraffic {
  /// An operation over the ranks that hold copies of some parameters (under dualpipe those of two stages), cut into
  /// `calls` buckets.
  struct Part {
    ParallelGroup group = ParallelGroup::data_shard;
    network::CollectiveOp op = network::CollectiveOp::all_reduce;
    Bytes bytes;
    double calls = 1;
    [[nodiscard]] network::CollectiveKey key(const network::RankGroups& groups,
                                             const network::Slice& slice = {}) const {
      return {op, bytes, groups[group], calls, slice};
    }
  };
  /// At most one part for each group of parameters: the groups that send anything.
  using Parts = boost::container::static_vector<Part, kCopyGroups.size()>;
  Parts forward_gather;    ///< of weights, for each microbatch's forward
  Parts backward_gather;   ///< of weights, for each microbatch's backward
  Parts backward_scatter;  ///< of gradients, after each microbatch's backward
  Parts gradients;         ///< sent once a step, with the last microbatch's backward
  Parts weights;           ///< gathered once a step, after the optimizer

  /// All of it.
  [[nodiscard]] boost::container::static_vector<Part, 5 * kCopyGroups.size()> all() const {
    boost::container::static_vector<Part, 5 * kCopyGroups.size()> parts;
    for (const Parts* const some :
         {&forward_gather, &backward_gather, &backward_scatter, &gradients, &weights})
      parts.insert(parts.end(), some->begin(), some->end());
    return parts;
  }
  /// The traffic beside one pass of every microbatch. Gradients leave in the pass that computes weight gradients.
  [[nodiscard]] boost::container::static_vector<Part, 2 * kCopyGroups.size()> beside(Pass pass,
                                                                                     bool cut) const;
};

/// Whether traffic goes beside the passes of every microbatch; otherwise all of it goes once, at the end of a step.
bool sends_beside_passes(const TrainingStep& inputs);

/// Lists the traffic. `parameters`: those of the stage on one rank, before ZeRO shards them.
DataTraffic data_traffic(const TrainingStep& inputs, const model::ParameterGroups& parameters);

}  // namespace shardscape::step
