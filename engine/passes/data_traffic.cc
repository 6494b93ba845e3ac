#include "engine/passes/data_traffic.h"

#include <algorithm>
#include <cmath>

namespace shardscape::passes {

DataTraffic data_traffic(const TrainingInputs& in, double parameters) {
  using network::CollectiveOp;
  DataTraffic traffic;
  if (in.plan.data * in.plan.context == 1) return traffic;
  const StackProfile& stack = in.setting.system.stack;
  const Bytes gradient_bytes(stack.state.gradient_comm_bytes * parameters);
  const Bytes weight_bytes(bytes_per_element(in.setting.workload.precision) * parameters);
  const std::int32_t zero = in.plan.zero_stage;
  const bool own = zero > 0 && stack.communication.zero_bucket > Bytes(0);
  const Bytes bucket = own ? stack.communication.zero_bucket : stack.communication.bucket;
  const auto part = [&](CollectiveOp op, Bytes bytes) {
    return DataTraffic::Part{op, bytes, std::max(1.0, std::ceil(bytes / bucket))};
  };
  if (zero == 0) {
    traffic.gradients = part(CollectiveOp::all_reduce, gradient_bytes);
    return traffic;
  }
  const DataTraffic::Part scatter = part(CollectiveOp::reduce_scatter, gradient_bytes);
  const DataTraffic::Part gather = part(CollectiveOp::all_gather, weight_bytes);
  const bool each_microbatch =
      zero == 3 || (zero == 2 && stack.zero2_gradients == Zero2Gradients::per_microbatch);
  (each_microbatch ? traffic.backward_scatter : traffic.gradients) = scatter;
  if (zero == 3) {
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

}  // namespace shardscape::passes
