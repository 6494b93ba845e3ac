#include "engine/step/contention.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "engine/step/data_traffic.h"

namespace shardscape::step {

namespace {

using model::CollectiveCall;
using network::PlanLayout;
using network::RankGroup;

class ContentionSum {
 public:
  /// `calls`: of the stage; kept for other plans where `known` is, which has the groups then.
  ContentionSum(const TrainingStep& in, network::CollectiveModel& collectives, ContendedCalls& calls,
                const LayerTimes* known)
      : in_(in),
        collectives_(collectives),
        layout_(in.plan),
        own_(known != nullptr && known->groups ? std::nullopt : std::optional(layout_.groups())),
        groups_(own_ ? *own_ : *known->groups),
        calls_(calls),
        shared_(known != nullptr),
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

  /// Gathers or scatters beside the passes of each microbatch, and what goes once in a step.
  [[nodiscard]] ContendedData data_of(std::int32_t stage) {
    ContendedData data;
    const DataTraffic traffic = data_traffic(in_, in_.parameters_of(stage));
    for (const Pass pass : kTrainingPasses) {
      for (const DataTraffic::Part& part : traffic.beside(pass, in_.cuts())) add_part(part, data.beside);
    }
    for (const DataTraffic::Parts& parts : {traffic.gradients, traffic.weights})
      for (const DataTraffic::Part& part : parts) add_part(part, data.once);
    return data;
  }

  /// What they add to a step.
  void add_data(ContendedData& data, const TimedStage& step) {
    const double count = in_.pipeline.per_chunk();
    siblings_ += count * data.beside.siblings;
    if (in_.setting.system.stack.communication.data_overlap > 0) add_axes(data.beside, count / step.step);
    const Seconds once = data.once.time;
    if (once <= Seconds(0)) return;
    const double shown = std::min(1.0, step.data_tail / once);
    siblings_ += shown * data.once.siblings;
    if (shown < 1 && step.passes > Seconds(0)) add_axes(data.once, (1 - shown) / step.passes);
  }

  [[nodiscard]] Seconds sum() const { return siblings_ + axes_; }

 private:
  using Rate = decltype(1 / Seconds(1));

  void add_part(const DataTraffic::Part& part, ContendedData::Traffic& traffic) {
    const RankGroup& shard = groups_[part.group];
    if (part.bytes <= Bytes(0) || shard.alone()) return;
    const Seconds time = collectives_.time(part.op, part.bytes, shard, part.calls);
    traffic.siblings += time - within(part.op, part.bytes, shard, part.calls, time);
    traffic.time += time;
    traffic.sent.push_back({part, time});
  }

  /// `rate`: how often the traffic goes over the time that the calls share.
  void add_axes(ContendedData::Traffic& traffic, Rate rate) {
    for (ContendedData::Sent& sent : traffic.sent) {
      const ContendedCalls::Flags& meets = met_by(sent);
      for (std::size_t i = 0; i < meets.size(); ++i) {
        if (meets[i] != 0) axes_ += (calls_.sent[i].seconds * rate) * on_links(sent);
      }
    }
  }

  Seconds on_links(ContendedData::Sent& sent) {
    const DataTraffic::Part& part = sent.part;
    if (!sent.on_links)
      sent.on_links = on_links(part.op, part.bytes, groups_[part.group], part.calls, sent.time);
    return *sent.on_links;
  }

  void list_calls(const std::vector<CollectiveCall>& calls, double count) {
    for (const CollectiveCall& call : calls) {
      const OneCall one = one_call(call);
      calls_.siblings += count * call.repeats * one.siblings;
      calls_.sent.push_back({&call, count * call.repeats * one.on_links});
    }
  }

  /// Of one call what is due to the groups of other stages, and what it takes on links. The calls of a layer and its
  /// passes are few different ones; the plain path looks at each.
  struct OneCall {
    const CollectiveCall* call;
    Seconds siblings, on_links;
  };
  static bool alike(const CollectiveCall& one, const CollectiveCall& other) {
    return one.group == other.group && one.op == other.op && one.bytes == other.bytes;
  }
  OneCall one_call(const CollectiveCall& call) {
    for (const OneCall& known : listed_) {
      if (shared_ && alike(*known.call, call)) return known;
    }
    const RankGroup& group = groups_[call.group];
    const Seconds time = collectives_.time(call.op, call.bytes, group);
    listed_.push_back({&call, time - within(call.op, call.bytes, group, 1, time),
                       on_links(call.op, call.bytes, group, 1, time)});
    return listed_.back();
  }

  const ContendedCalls::Flags& met_by(ContendedData::Sent& sent_beside) {
    const DataTraffic::Part& part = sent_beside.part;
    const network::CollectiveModel::Asked data{part.op, part.bytes, groups_[part.group], part.calls};
    if (!shared_) calls_.meetings.clear();  // sets of links that are not kept may lie where others lay
    if (!shared_ || sent_beside.links == nullptr) sent_beside.links = &collectives_.tile_links(data);
    for (const ContendedCalls::Meeting& known : calls_.meetings)
      if (known.links == sent_beside.links) return known.meets;
    ContendedCalls::Meeting& meeting = calls_.meetings.emplace_back();
    meeting.links = sent_beside.links;
    for (const ContendedCalls::Sent& sent : calls_.sent) {
      const CollectiveCall& call = *sent.call;
      // One like it was asked for already.
      const std::span<const ContendedCalls::Sent> before(calls_.sent.data(), meeting.meets.size());
      const auto like = std::ranges::find_if(before, [&](const ContendedCalls::Sent& other) {
        return shared_ && other.seconds > Seconds(0) && alike(*other.call, call);
      });
      if (like != before.end()) {
        const char known = meeting.meets[static_cast<std::size_t>(like - before.begin())];
        meeting.meets.push_back(known);
        continue;
      }
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

  /// Of a time, all but what calls take at the ranks: only while both send do they slow each other.
  Seconds on_links(network::CollectiveOp op, Bytes bytes, const RankGroup& group, double calls,
                   Seconds time) {
    const Bytes one = bytes / calls;
    Seconds at_ranks = in_.setting.system.stack.communication.call +
                       collectives_.beyond_links(op, collectives_.wire_bytes(op, one, group), group);
    if (const auto choice = collectives_.choice(op, bytes, group, calls)) {
      at_ranks += collectives_.copy_time(network::operation_of(op), choice->algorithm, one,
                                         static_cast<std::int32_t>(group.size()));
    }
    return std::max(Seconds(0), time - calls * at_ranks);
  }

  const TrainingStep& in_;
  network::CollectiveModel& collectives_;
  PlanLayout layout_;
  std::optional<network::RankGroups> own_;
  const network::RankGroups& groups_;
  ContendedCalls& calls_;
  bool shared_;
  boost::container::small_vector<OneCall, 8> listed_;
  Seconds siblings_;  ///< of the calls and of traffic beside them
  Seconds axes_;
};

}  // namespace

double contended_share(const TrainingStep& in, const TimedStage& step, network::CollectiveModel& collectives,
                       LayerTimes* known, StageDataCosts* data) {
  const bool shared = known != nullptr;
  std::vector<ContendedCalls> own;
  std::vector<ContendedCalls>& listed = shared ? known->contended : own;
  auto calls = std::ranges::find(listed, in.layers[step.stage], &ContendedCalls::layers);
  const bool fresh = calls == listed.end();
  if (fresh) {
    listed.push_back({in.layers[step.stage], {}, {}, {}});
    calls = std::prev(listed.end());
  }
  ContentionSum sum(in, collectives, *calls, known);
  if (fresh) sum.list_calls();
  const auto index = static_cast<std::int32_t>(step.stage);
  std::optional<ContendedData> alone;
  std::optional<ContendedData>& of_stage = shared ? data->of(in, index).contended : alone;
  if (!of_stage) of_stage = sum.data_of(index);
  sum.add_data(*of_stage, step);
  return sum.sum() / step.step;
}

}  // namespace shardscape::step
