#include "engine/passes/contention.h"

#include <vector>

#include "engine/network/plan_groups.h"
#include "engine/passes/data_traffic.h"

namespace shardscape::passes {

namespace {

using model::CollectiveCall;
using network::PlanLayout;
using network::RankGroup;

class ContentionSum {
 public:
  ContentionSum(const TrainingInputs& in, network::CollectiveModel& collectives)
      : in_(in),
        collectives_(collectives),
        layout_(in.plan),
        groups_(in.plan),
        shard_(groups_[ParallelGroup::data_shard]) {}

  /// Calls of all microbatches, `count` times per microbatch.
  void add_calls(const std::vector<CollectiveCall>& calls, double count) {
    for (const CollectiveCall& call : calls) {
      const RankGroup& group = group_of(call);
      const Seconds time = collectives_.time(call.op, call.bytes, group);
      siblings_ += count * call.repeats * (time - within(call.op, call.bytes, group, 1, time));
      calls_.push_back({&call, count * call.repeats * time});
    }
  }

  /// Traffic beside the passes of all microbatches.
  void add_data(const DataTraffic::Part& part, double count, Seconds step) {
    if (part.bytes <= Bytes(0) || shard_.depth == 0) return;
    const Seconds time = collectives_.time(part.op, part.bytes, shard_, part.calls);
    siblings_ += count * (time - within(part.op, part.bytes, shard_, part.calls, time));
    if (in_.setting.system.stack.communication.data_overlap <= 0) return;
    const network::LinkSet links = collectives_.links(part.op, part.bytes, shard_, part.calls);
    for (const Sent& sent : calls_) {
      const CollectiveCall& call = *sent.call;
      if (sent.seconds <= Seconds(0)) continue;
      if (links.intersects(collectives_.links(call.op, call.bytes, group_of(call))))
        axes_ += (sent.seconds / step) * count * time;
    }
  }

  [[nodiscard]] Seconds sum() const { return siblings_ + axes_; }

 private:
  struct Sent {
    const CollectiveCall* call;
    Seconds seconds;
  };
  [[nodiscard]] const RankGroup& group_of(const CollectiveCall& call) const {
    return groups_[call.axis == PlanAxis::tensor ? ParallelGroup::tensor : ParallelGroup::context];
  }
  Seconds within(network::CollectiveOp op, Bytes bytes, const RankGroup& group, double calls, Seconds all) {
    if (in_.plan.pipeline == 1) return all;
    return collectives_.time_within_slice(op, bytes, group, calls,
                                          {in_.plan.pipeline, layout_.stride(PlanAxis::pipeline)});
  }

  const TrainingInputs& in_;
  network::CollectiveModel& collectives_;
  PlanLayout layout_;
  network::PlanGroups groups_;
  const RankGroup& shard_;
  std::vector<Sent> calls_;
  Seconds siblings_, axes_;
};

}  // namespace

double contended_share(const TrainingInputs& in, std::size_t stage, Seconds step,
                       network::CollectiveModel& collectives) {
  const double m = in.pipeline.microbatches;
  ContentionSum sum(in, collectives);
  const bool again = in.plan.recompute == Recompute::full;
  for (const auto& [kind, layers] : in.layers[stage]) {
    sum.add_calls(in.costs.blocks[kind].forward_calls, m * layers * (again ? 2 : 1));
    sum.add_calls(in.costs.blocks[kind].backward_calls, m * layers);
  }
  const DataTraffic traffic = data_traffic(in, in.parameters.of_stage(in.layers, stage));
  for (const DataTraffic::Part& part :
       {traffic.forward_gather, traffic.backward_gather, traffic.backward_scatter}) {
    sum.add_data(part, m, step);
  }
  return sum.sum() / step;
}

}  // namespace shardscape::passes
