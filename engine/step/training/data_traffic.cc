#include "engine/step/training/data_traffic.h"

#include <algorithm>
#include <cmath>

#include "engine/spec/zero.h"

namespace shardscape::step {

bool sends_beside_passes(const TrainingStep& in) {
  return scatters_each_microbatch(in.plan, in.setting.system.stack);
}

DataTraffic data_traffic(const TrainingStep& in, std::int32_t stage) {
  using network::CollectiveOp;
  const StackProfile& stack = in.setting.system.stack;
  const model::ParameterGroups parameters = in.parameters_of(stage);
  const Pass gradient_pass = in.cuts() ? Pass::weight : Pass::backward;
  const bool sharded = zero_shards(in.plan, ZeroState::optimizer),
             gathers = zero_shards(in.plan, ZeroState::weights);
  DataTraffic traffic;
  const auto gather = [](const model::ParameterGroup& group) { return group.held.weights; };
  const auto reduce = [&](const model::ParameterGroup& group) {
    return Bytes(stack.state.gradient_comm_bytes * group.held.count);
  };
  const auto add = [&](CollectiveOp op, Pass pass, bool once, const auto& bytes_of) {
    for (const model::ParameterGroup& group : parameters) {
      const Bytes bytes = bytes_of(group);
      if (in.pipeline.copies() * ranks_of(in.plan, group.copies) == 1 || bytes <= Bytes(0)) continue;
      const double calls = std::ceil(bytes / gradient_bucket(in.plan, stack, group.copies));
      traffic.parts.push_back({group.copies, op, bytes, std::max(1.0, calls), pass, once});
    }
  };
  if (gathers) {
    add(CollectiveOp::all_gather, Pass::forward, false, gather);
    add(CollectiveOp::all_gather, Pass::backward, false, gather);
  }
  add(sharded ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce, gradient_pass,
      !sends_beside_passes(in), reduce);
  if (sharded && !gathers) add(CollectiveOp::all_gather, Pass::forward, true, gather);
  return traffic;
}

}  // namespace shardscape::step
