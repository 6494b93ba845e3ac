// What data parallelism sends for one stage of one replica, before any of it is hidden.
#pragma once

#include <boost/container/static_vector.hpp>

#include "engine/network/collective_model.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

struct DataTraffic {
  /// An operation over the ranks that hold copies of some parameters, cut into `calls` buckets.
  struct Part {
    ParallelGroup group = ParallelGroup::data_shard;
    network::CollectiveOp op = network::CollectiveOp::all_reduce;
    Bytes bytes;
    double calls = 1;
  };
  /// One for each group of parameters that sends any.
  using Parts = boost::container::static_vector<Part, kCopyGroups.size()>;
  Parts forward_gather;    ///< of weights, each microbatch's forward
  Parts backward_gather;   ///< of weights, each microbatch's backward
  Parts backward_scatter;  ///< of gradients, each microbatch's backward
  Parts gradients;         ///< once, with the last microbatch's backward
  Parts weights;           ///< once, after the optimizer

  /// What goes beside a pass of every microbatch. Gradients leave where those of weights are computed.
  [[nodiscard]] boost::container::static_vector<Part, 2 * kCopyGroups.size()> beside(Pass pass,
                                                                                     bool cut) const;
};

/// Whether anything goes beside the passes of every microbatch: else all of it goes once, at the end of a step.
bool sends_beside_passes(const TrainingStep& inputs);

/// `parameters`: of the stage, on one rank before ZeRO.
DataTraffic data_traffic(const TrainingStep& inputs, const model::ParameterGroups& parameters);

}  // namespace shardscape::step
