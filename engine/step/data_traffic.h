// What data parallelism sends for one stage of one replica, before any of it is hidden.
#pragma once

#include <boost/container/static_vector.hpp>

#include "engine/network/collective_model.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

struct DataTraffic {
  /// An operation over the data and context ranks, cut into `calls` buckets; none where bytes are 0.
  struct Part {
    network::CollectiveOp op = network::CollectiveOp::all_reduce;
    Bytes bytes;
    double calls = 1;
  };
  Part forward_gather;    ///< of weights, each microbatch's forward
  Part backward_gather;   ///< of weights, each microbatch's backward
  Part backward_scatter;  ///< of gradients, each microbatch's backward
  Part gradients;         ///< once, with the last microbatch's backward
  Part weights;           ///< once, after the optimizer

  /// What goes beside a pass of every microbatch. Gradients leave where those of weights are computed.
  [[nodiscard]] boost::container::static_vector<Part, 2> beside(Pass pass, bool cut) const;
};

/// `parameters`: of the stage, on one rank before ZeRO.
DataTraffic data_traffic(const TrainingStep& inputs, const model::Parameters& parameters);

}  // namespace shardscape::step
