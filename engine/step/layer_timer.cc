#include "engine/step/layer_timer.h"

#include <algorithm>
#include <vector>

#include "engine/spec/parallel_groups.h"
#include "engine/step/expert_leads.h"
#include "engine/step/paired_passes.h"

namespace shardscape::step {

namespace {

using network::RankGroups;
using network::Slice;

using GroupTimes = EnumArray<ParallelGroup, Seconds>;

GroupTimes price_calls(const PartCost& part, const StackProfile::Communication& stack,
                       const RankGroups& groups, network::CollectiveModel& collectives, const Slice& slice) {
  GroupTimes times = call_times(
      part, stack,
      [&](const model::CollectiveCall& call) {
        return collectives.time(call.op, call.bytes, groups[call.group], 1, slice);
      },
      [&](const model::CollectiveCall& call, Seconds work) {
        return collectives.late_combine(call.bytes, groups[call.group], work, slice);
      });
  times[ParallelGroup::expert] += crowding(part, groups, collectives, slice);
  times[ParallelGroup::expert] -= hidden_by_lead(part, groups, collectives, slice);
  for (const PartCost::Overlap& overlap : part.overlaps) {
    const model::CollectiveCall& call = overlap.exchange;
    const Seconds one = collectives.time(call.op, call.bytes, groups[call.group], 1, slice);
    Seconds room = overlap.beside;
    times[ParallelGroup::expert] -= hide(call.repeats * one, 1, room);
  }
  return times;
}

/// As pass_launch(), of a pass that consists of these segments.
Seconds launch_of(const TrainingStep& in, LayerKind kind, const Segments& segments) {
  const StackProfile::Host& host = in.setting.system.stack.host;
  const LayerCost& layer = in.costs[kind];
  const StackProfile::Experts& experts = in.setting.system.stack.experts;
  const Seconds each =
      (in.setting.model.moe ? static_cast<double>(in.setting.model.moe->experts) : 0) * experts.per_expert;
  const Seconds forward = host.forward_layer + layer.routers * (experts.forward_layer + each) +
                          layer.plain_forward * experts.plain_launch;
  const Seconds backward = host.backward_layer + layer.routers * (experts.backward_layer + each) +
                           layer.plain_backward * experts.plain_launch;
  const auto own = [&](Part part) {
    switch (part) {
      case Part::forward:
        return forward;
      case Part::backward:
        return backward;
      case Part::input:
        return (1 - layer.weight_kernels) * backward;
      case Part::weight:
        return layer.weight_kernels * backward;
      case Part::repeated:
        return layer.repeated_kernels * forward;
    }
    return Seconds(0);
  };
  Seconds sum;
  for (const Segment& segment : segments) {
    if (segment.part == Part::repeated && layer.repeated_kernels == 0) continue;  // the attention core alone
    Seconds launch = own(segment.part), progress;
    for (const model::CollectiveCall& call : layer[segment.part].calls) {
      launch += call.repeats * host.per_collective;
      progress += call.repeats * ranks_of(in.plan, call.group) * host.per_collective_rank;
    }
    sum += std::max(launch, progress);
  }
  return sum;
}

}  // namespace

LayerTimer::LayerTimer(const TrainingStep& in, const LayerCosts& costs, const RankGroups& groups,
                       network::CollectiveModel* collectives, const Slice& slice)
    : in_(in), costs_(costs), groups_(groups), collectives_(collectives), slice_(slice) {}

PassTime LayerTimer::operator()(LayerKind kind, Pass pass) const {
  return of(kind, in_.segments(kind, pass));
}

PassTime LayerTimer::of(LayerKind kind, const Segments& segments) const {
  PassTime time;
  for (const Segment& segment : segments) add_device(costs_[kind], segment, time);
  time[TimeClass::host] = std::max(Seconds(0), launch_of(in_, kind, segments) - time.total());
  return time;
}

void LayerTimer::add_device(const LayerCost& layer, const Segment& segment, PassTime& time) const {
  const PartCost& part = layer[segment.part];
  time[segment.again ? TimeClass::recompute : TimeClass::compute] += part.device;
  if (collectives_ == nullptr) return;
  const GroupTimes comm =
      price_calls(part, in_.setting.system.stack.communication, groups_, *collectives_, slice_);
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    if (comm[group] <= Seconds(0)) continue;
    time[class_of(group)] += comm[group] - hidden_by_attention(in_.setting.system.stack.communication, group,
                                                               comm[group], part.attention_core);
  }
}

std::vector<std::vector<Seconds>> LayerTimer::pieces(LayerKind kind, const Segments& segments) const {
  std::vector<std::vector<Seconds>> list;
  for (const Segment& segment : segments) {
    list.push_back(piece_times(costs_[kind][segment.part], in_.setting.system.stack.communication,
                               [&](const model::CollectiveCall& call) {
                                 if (collectives_ == nullptr) return Seconds(0);
                                 return collectives_->time(call.op, call.bytes, groups_[call.group], 1,
                                                           slice_);
                               }));
  }
  return list;
}

StagePasses StageTimer::of(const LayerRuns& runs) {
  StagePasses passes;
  for (const LayerRun& run : runs) {
    const LayerPasses& layer = timed(run.kind);
    passes.forward += run.count * layer.forward;
    PassTime backward = run.count * backward_of(run.kind);
    if (in_.defers(run.kind)) passes.deferred = static_cast<double>(in_.deferred()) * layer.weight;
    if (in_.cuts(run.kind)) {
      const PassTime weight = run.count * layer.weight;
      backward += weight;
      passes.weight += weight.total();
      passes.weight_host += weight[TimeClass::host];
    } else if (in_.splits(run.kind)) {
      passes.weight += run.count * layer.weight.total();
    }
    passes.backward += backward;
    if (run.kind == kEmbeddingLayer) passes.ends.embedding = backward.total();
    if (run.kind == kHeadLayer) passes.ends.head = backward.total();
    if (run.kind == kFurtherLayer) passes.ends.further = backward.total();
  }
  return passes;
}

Seconds StageTimer::hidden(const LayerRuns& forward, const LayerRuns& backward) {
  const StackProfile::Communication& stack = in_.setting.system.stack.communication;
  if (stack.expert_overlap <= 0 || !in_.key().dispatches) return Seconds(0);
  std::vector<LayerEmitter::Item> ahead, back;
  PassTime sum;
  Seconds least;
  const auto add = [&](const LayerRun& run, Pass pass, const PassTime& time,
                       std::vector<LayerEmitter::Item>& items) {
    const Segments segments = in_.segments(run.kind, pass);
    sum += run.count * time;
    least += run.count * without_exchanges(run.kind, segments, time);
    const std::vector<std::vector<Seconds>> pieces = timer_.pieces(run.kind, segments);
    for (std::int32_t n = 0; n < run.count; ++n) append_pieces(pieces, time[TimeClass::expert_comm], items);
  };
  for (const LayerRun& run : forward) add(run, Pass::forward, timed(run.kind).forward, ahead);
  for (auto run = backward.rbegin(); run != backward.rend(); ++run)
    add(*run, in_.defers(run->kind) ? Pass::input : Pass::backward, backward_of(run->kind), back);
  double seconds = 0;
  pair_up(ahead, back, 0, stack.expert_overlap, seconds);
  const Seconds device = sum.total() - sum[TimeClass::host] - Seconds(stack.expert_hidden * seconds);
  return std::max(Seconds(0), sum.total() - std::max(device, least));
}

/// Of one layer and microbatch: of the head the mean.
PassTime StageTimer::backward_of(LayerKind kind) {
  const LayerPasses& layer = timed(kind);
  if (!in_.defers(kind)) return layer.backward;
  const double share = in_.deferred_share();
  PassTime backward = share * layer.input;
  if (share < 1) backward += (1 - share) * layer.backward;
  return backward;
}

/// A pass through a layer all of whose exchanges hide.
Seconds StageTimer::without_exchanges(LayerKind kind, const Segments& segments, const PassTime& time) const {
  const Seconds exchanges = time[TimeClass::expert_comm], host = time[TimeClass::host];
  if (exchanges <= Seconds(0)) return time.total();
  return std::max(time.total() - host - exchanges, launch_of(in_, kind, segments));
}

const LayerPasses& StageTimer::timed(LayerKind kind) {
  std::optional<LayerPasses>& layer = layers_[kind.index()];
  if (!layer) {
    layer = {timer_(kind, Pass::forward), timer_(kind, Pass::backward), {}, {}};
    if (in_.cuts(kind) || in_.defers(kind) || in_.splits(kind)) layer->weight = timer_(kind, Pass::weight);
    if (in_.defers(kind) || in_.splits(kind)) layer->input = timer_(kind, Pass::input);
    if (in_.splits(
            kind)) {  // each part for itself: what is left of the whole would be less the slower the other part is
      layer->backward = layer->input;
      layer->backward += layer->weight;
    }
  }
  return *layer;
}

Seconds pass_launch(const TrainingStep& in, LayerKind kind, Pass pass) {
  return launch_of(in, kind, in.segments(kind, pass));
}

PassTime time_segments(const TrainingStep& in, LayerKind kind, const Segments& segments,
                       const RankGroups& groups, network::CollectiveModel* collectives) {
  return LayerTimer(in, in.costs, groups, collectives, {}).of(kind, segments);
}

}  // namespace shardscape::step
