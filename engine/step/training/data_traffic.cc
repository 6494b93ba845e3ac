#include "engine/step/training/data_traffic.h"

#include <algorithm>
#include <cmath>

#include "engine/spec/zero.h"

namespace shardscape::step {

namespace {

/// Adds the traffic of one group of parameters.
void add_traffic(const TrainingStep& in, const model::ParameterGroup& parameters, DataTraffic& traffic) {
  using network::CollectiveOp;
  if (in.pipeline.copies() * ranks_of(in.plan, parameters.copies) == 1) return;
  const StackProfile& stack = in.setting.system.stack;
  const Bytes gradient_bytes(stack.state.gradient_comm_bytes * parameters.held.count);
  const bool sharded = zero_shards(in.plan, ZeroState::optimizer);
  const Bytes bucket = gradient_bucket(in.plan, stack, parameters.copies);
  const auto add = [&](DataTraffic::Parts& parts, CollectiveOp op, Bytes bytes) {
    if (bytes > Bytes(0))
      parts.push_back({parameters.copies, op, bytes, std::max(1.0, std::ceil(bytes / bucket))});
  };
  if (!sharded) return add(traffic.gradients, CollectiveOp::all_reduce, gradient_bytes);
  add(scatters_each_microbatch(in.plan, stack) ? traffic.backward_scatter : traffic.gradients,
      CollectiveOp::reduce_scatter, gradient_bytes);
  if (zero_shards(in.plan, ZeroState::weights)) {
    add(traffic.forward_gather, CollectiveOp::all_gather, parameters.held.weights);
    add(traffic.backward_gather, CollectiveOp::all_gather, parameters.held.weights);
  } else {
    add(traffic.weights, CollectiveOp::all_gather, parameters.held.weights);
  }
}

}  // namespace

bool sends_beside_passes(const TrainingStep& in) {
  return scatters_each_microbatch(in.plan, in.setting.system.stack);
}

DataTraffic data_traffic(const TrainingStep& in, const model::ParameterGroups& parameters) {
  DataTraffic traffic;
  for (const model::ParameterGroup& group : parameters) add_traffic(in, group, traffic);
  return traffic;
}

boost::container::static_vector<DataTraffic::Part, 2 * kCopyGroups.size()> DataTraffic::beside(
    Pass pass, bool cut) const {
  boost::container::static_vector<Part, 2 * kCopyGroups.size()> parts;
  const auto add = [&](const Parts& more) { parts.insert(parts.end(), more.begin(), more.end()); };
  if (pass == Pass::forward) add(forward_gather);
  if (pass == Pass::backward) add(backward_gather);
  if (pass == (cut ? Pass::weight : Pass::backward)) add(backward_scatter);
  return parts;
}

}  // namespace shardscape::step
