#include "engine/passes/data_traffic.h"

#include <algorithm>
#include <cmath>

namespace shardscape::passes {

DataTraffic data_traffic(const TrainingInputs& in, const model::Parameters& parameters) {
  using network::CollectiveOp;
  DataTraffic traffic;
  if (in.plan.data * in.plan.context == 1) return traffic;
  const StackProfile& stack = in.setting.system.stack;
  const Bytes gradient_bytes(stack.state.gradient_comm_bytes * parameters.count);
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
  const DataTraffic::Part gather = part(CollectiveOp::all_gather, parameters.weights);
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

}  // namespace shardscape::passes
