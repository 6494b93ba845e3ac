#include "engine/step/contention.h"

#include <array>
#include <vector>

#include "engine/step/data_traffic.h"

namespace shardscape::step {

namespace {

using model::CollectiveCall;
using network::PlanLayout;
using network::RankGroup;

class ContentionSum {
 public:
  ContentionSum(const TrainingStep& in, network::CollectiveModel& collectives)
      : in_(in), collectives_(collectives), layout_(in.plan), groups_(layout_.groups()) {}

  /// Calls of all microbatches, `count` times per microbatch.
  void add_calls(const std::vector<CollectiveCall>& calls, double count) {
    for (const CollectiveCall& call : calls) {
      const RankGroup& group = groups_[call.group];
      const Seconds time = collectives_.time(call.op, call.bytes, group);
      siblings_ += count * call.repeats * (time - within(call.op, call.bytes, group, 1, time));
      calls_.push_back({&call, count * call.repeats * time});
    }
  }

  /// Gathers or scatters that run `count` times beside passes of a step that takes `step` in all.
  void add_data(const DataTraffic::Part& part, double count, Seconds step) {
    const RankGroup& shard = groups_[part.group];
    if (part.bytes <= Bytes(0) || shard.depth == 0) return;
    const Seconds time = collectives_.time(part.op, part.bytes, shard, part.calls);
    siblings_ += count * (time - within(part.op, part.bytes, shard, part.calls, time));
    if (in_.setting.system.stack.communication.data_overlap <= 0) return;
    const network::LinkSet links = collectives_.links(part.op, part.bytes, shard, part.calls);
    for (const Sent& sent : calls_) {
      const CollectiveCall& call = *sent.call;
      if (sent.seconds <= Seconds(0)) continue;
      if (links.intersects(collectives_.links(call.op, call.bytes, groups_[call.group])))
        axes_ += (sent.seconds / step) * count * time;
    }
  }

  [[nodiscard]] Seconds sum() const { return siblings_ + axes_; }

 private:
  struct Sent {
    const CollectiveCall* call;
    Seconds seconds;
  };
  Seconds within(network::CollectiveOp op, Bytes bytes, const RankGroup& group, double calls, Seconds all) {
    if (in_.plan.pipeline == 1) return all;
    return collectives_.time_within_slice(op, bytes, group, calls,
                                          {in_.plan.pipeline, layout_.stride(PlanAxis::pipeline)});
  }

  const TrainingStep& in_;
  network::CollectiveModel& collectives_;
  PlanLayout layout_;
  network::RankGroups groups_;
  std::vector<Sent> calls_;
  Seconds siblings_, axes_;
};

/// The calls of the blocks of a stage, of all microbatches.
void add_blocks(const TrainingStep& in, std::size_t stage, ContentionSum& sum) {
  const double m = in.pipeline.per_chunk();
  for (const model::BlockRun& run : in.layers[stage]) {
    const LayerKind kind = block_layer(run.kind);
    std::array<double, kParts> runs{};
    for (const Pass pass : kTrainingPasses) {
      for (const Segment& segment : in.segments(kind, pass)) ++runs[static_cast<std::size_t>(segment.part)];
    }
    for (std::size_t part = 0; part < kParts; ++part) {
      if (runs[part] > 0) sum.add_calls(in.costs[kind].parts[part].calls, m * run.count * runs[part]);
    }
  }
}

}  // namespace

double contended_share(const TrainingStep& in, std::size_t stage, Seconds step,
                       network::CollectiveModel& collectives, LayerTimes* known) {
  const DataTraffic traffic = data_traffic(in, in.parameters_of(static_cast<std::int32_t>(stage)));
  const bool beside = !traffic.forward_gather.empty() || !traffic.backward_gather.empty() ||
                      !traffic.backward_scatter.empty();
  const bool shared = known != nullptr && !beside;  // traffic beside the passes wants to know each call
  if (shared) {
    for (const auto& [layers, siblings] : known->contended_calls)
      if (layers == in.layers[stage]) return siblings / step;
  }
  ContentionSum sum(in, collectives);
  add_blocks(in, stage, sum);
  if (shared) known->contended_calls.emplace_back(in.layers[stage], sum.sum());
  for (const Pass pass : kTrainingPasses) {
    for (const DataTraffic::Part& part : traffic.beside(pass, in.cuts()))
      sum.add_data(part, in.pipeline.per_chunk(), step);
  }
  return sum.sum() / step;
}

}  // namespace shardscape::step
