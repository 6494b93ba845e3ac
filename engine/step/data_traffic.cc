#include "engine/step/data_traffic.h"

#include <algorithm>
#include <cmath>

#include "engine/spec/zero.h"

namespace shardscape::step {

DataTraffic data_traffic(const TrainingStep& in, const model::Parameters& parameters) {
  using network::CollectiveOp;
  DataTraffic traffic;
  if (ranks_of(in.plan, ParallelGroup::data_shard) == 1) return traffic;
  const StackProfile& stack = in.setting.system.stack;
  const Bytes gradient_bytes(stack.state.gradient_comm_bytes * parameters.count);
  const bool sharded = zero_shards(in.plan, ZeroState::optimizer);
  const bool own = sharded && stack.communication.zero_bucket > Bytes(0);
  const Bytes bucket = own ? stack.communication.zero_bucket : stack.communication.bucket;
  const auto part = [&](CollectiveOp op, Bytes bytes) {
    return DataTraffic::Part{op, bytes, std::max(1.0, std::ceil(bytes / bucket))};
  };
  if (!sharded) {
    traffic.gradients = part(CollectiveOp::all_reduce, gradient_bytes);
    return traffic;
  }
  const DataTraffic::Part scatter = part(CollectiveOp::reduce_scatter, gradient_bytes);
  const DataTraffic::Part gather = part(CollectiveOp::all_gather, parameters.weights);
  (scatters_each_microbatch(in.plan, stack) ? traffic.backward_scatter : traffic.gradients) = scatter;
  if (zero_shards(in.plan, ZeroState::weights)) {
    traffic.forward_gather = traffic.backward_gather = gather;
  } else {
    traffic.weights = gather;
  }
  return traffic;
}

boost::container::static_vector<DataTraffic::Part, 2> DataTraffic::beside(Pass pass, bool cut) const {
  boost::container::static_vector<Part, 2> parts;
  const auto add = [&](const Part& part) {
    if (part.bytes > Bytes(0)) parts.push_back(part);
  };
  if (pass == Pass::forward) add(forward_gather);
  if (pass == Pass::backward) add(backward_gather);
  if (pass == (cut ? Pass::weight : Pass::backward)) add(backward_scatter);
  return parts;
}

}  // namespace shardscape::step
