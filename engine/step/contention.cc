#include "engine/step/contention.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "engine/step/data_traffic.h"

namespace shardscape::step {

namespace {

using model::CollectiveCall;
using network::PlanLayout;
using network::RankGroup;

class ContentionSum {
 public:
  /// `calls`: of the stage; kept for other plans where `shared`.
  ContentionSum(const TrainingStep& in, network::CollectiveModel& collectives, ContendedCalls& calls,
                bool shared)
      : in_(in),
        collectives_(collectives),
        layout_(in.plan),
        groups_(layout_.groups()),
        calls_(calls),
        shared_(shared),
        siblings_(calls.siblings) {}

  /// The calls of the blocks of a stage, of all microbatches.
  void list_calls() {
    const double m = in_.pipeline.per_chunk();
    for (const model::BlockRun& run : calls_.layers) {
      const LayerKind kind = block_layer(run.kind);
      std::array<double, kParts> runs{};
      for (const Pass pass : kTrainingPasses) {
        for (const Segment& segment : in_.segments(kind, pass))
          ++runs[static_cast<std::size_t>(segment.part)];
      }
      for (std::size_t part = 0; part < kParts; ++part) {
        if (runs[part] > 0) list_calls(in_.costs[kind].parts[part].calls, m * run.count * runs[part]);
      }
    }
    siblings_ = calls_.siblings;
  }

  /// Gathers or scatters that run `count` times beside passes of a step that takes `step` in all.
  void add_data(const DataTraffic::Part& part, double count, Seconds step) {
    const RankGroup& shard = groups_[part.group];
    if (part.bytes <= Bytes(0) || shard.alone()) return;
    const Seconds time = collectives_.time(part.op, part.bytes, shard, part.calls);
    siblings_ += count * (time - within(part.op, part.bytes, shard, part.calls, time));
    if (in_.setting.system.stack.communication.data_overlap <= 0) return;
    const std::vector<char>& meets = met_by({part.op, part.bytes, shard, part.calls});
    for (std::size_t i = 0; i < meets.size(); ++i) {
      if (meets[i] != 0) axes_ += (calls_.sent[i].seconds / step) * count * time;
    }
  }

  [[nodiscard]] Seconds sum() const { return siblings_ + axes_; }

 private:
  void list_calls(const std::vector<CollectiveCall>& calls, double count) {
    for (const CollectiveCall& call : calls) {
      const RankGroup& group = groups_[call.group];
      const Seconds time = collectives_.time(call.op, call.bytes, group);
      calls_.siblings += count * call.repeats * (time - within(call.op, call.bytes, group, 1, time));
      calls_.sent.push_back({&call, count * call.repeats * time});
    }
  }

  const std::vector<char>& met_by(const network::CollectiveModel::Asked& data) {
    if (!shared_) calls_.meetings.clear();  // sets of links that are not kept may lie where others lay
    const network::LinkSet& links = collectives_.tile_links(data);
    for (const ContendedCalls::Meeting& known : calls_.meetings)
      if (known.links == &links) return known.meets;
    ContendedCalls::Meeting& meeting = calls_.meetings.emplace_back();
    meeting.links = &links;
    for (const ContendedCalls::Sent& sent : calls_.sent) {
      const CollectiveCall& call = *sent.call;
      const bool meets =
          sent.seconds > Seconds(0) && collectives_.meet(data, {call.op, call.bytes, groups_[call.group]});
      meeting.meets.push_back(meets ? 1 : 0);
    }
    return meeting.meets;
  }

  Seconds within(network::CollectiveOp op, Bytes bytes, const RankGroup& group, double calls, Seconds all) {
    if (in_.plan.pipeline == 1) return all;
    return collectives_.time_within_slice(op, bytes, group, calls,
                                          {in_.plan.pipeline, layout_.stride(PlanAxis::pipeline)});
  }

  const TrainingStep& in_;
  network::CollectiveModel& collectives_;
  PlanLayout layout_;
  network::RankGroups groups_;
  ContendedCalls& calls_;
  bool shared_;
  Seconds siblings_;  ///< of the calls and of traffic beside them
  Seconds axes_;
};

}  // namespace

double contended_share(const TrainingStep& in, std::size_t stage, Seconds step,
                       network::CollectiveModel& collectives, LayerTimes* known) {
  const bool shared = known != nullptr;
  std::vector<ContendedCalls> own;
  std::vector<ContendedCalls>& listed = shared ? known->contended : own;
  auto calls = std::ranges::find(listed, in.layers[stage], &ContendedCalls::layers);
  const bool fresh = calls == listed.end();
  if (fresh) {
    listed.push_back({in.layers[stage], {}, {}, {}});
    calls = std::prev(listed.end());
  }
  const bool beside = sends_beside_passes(in);
  if (!fresh && !beside) return calls->siblings / step;
  ContentionSum sum(in, collectives, *calls, shared);
  if (fresh) sum.list_calls();
  if (!beside) return sum.sum() / step;
  const DataTraffic traffic = data_traffic(in, in.parameters_of(static_cast<std::int32_t>(stage)));
  for (const Pass pass : kTrainingPasses) {
    for (const DataTraffic::Part& part : traffic.beside(pass, in.cuts()))
      sum.add_data(part, in.pipeline.per_chunk(), step);
  }
  return sum.sum() / step;
}

}  // namespace shardscape::step
