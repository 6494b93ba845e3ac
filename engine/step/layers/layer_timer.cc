// Times passes through layers: device, exposed calls, waits for the host.
#include "engine/step/layers/layer_timer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/spec/parallel_groups.h"
#include "engine/step/layers/context_drift.h"
#include "engine/step/layers/expert_leads.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/layers/sibling_turns.h"

namespace shardscape::step {

network::Gaps LayerTimer::work_between(const PartCost& part, ParallelGroup group) const {
  const StackProfile::Communication& stack = in_.setting.system.stack.communication;
  double calls = 0;
  Seconds context;
  boost::container::small_vector<Seconds, 8> beside(part.works.size());
  for (const PartCost::Call& call : part.calls) {
    if (is_of_experts(call.group) || prices_->groups[call.group].alone()) continue;
    calls += std::ceil(call.repeats);
    const Seconds all = call.repeats * priced(call).time;
    if (call.group == ParallelGroup::context) context += all;
    if (call.hider >= 0) beside[static_cast<std::size_t>(call.hider)] += all;
  }
  Seconds work =
      part.device - hidden_by_attention(stack, ParallelGroup::context, context, part.attention_core);
  for (std::size_t i = 0; i < beside.size(); ++i) {
    Seconds room = part.works[i];
    work -= hide(beside[i], stack.tensor_overlap, room);
  }
  const double left = std::max(0.0, work.value());
  network::Gaps gaps;
  const bool joins = prices_->groups[ParallelGroup::expert].holds(prices_->groups[group]);
  if (calls < 1 || (left <= 0 && !joins)) return {left / std::max(1.0, calls)};
  if (calls > static_cast<double>(gaps.capacity())) {
    gaps.assign(joins ? gaps.capacity() : 1, left / calls);
    gaps.front().together = joins;
    return gaps;
  }
  const double of_device = part.device > Seconds(0) ? left / part.device.value() : 0;
  Seconds before;
  bool waited = false;
  for (const PartCost::Turn& turn : part.turns) {
    const PartCost::Call& call = part.calls[turn.call];
    before += turn.before;
    waited = waited || (joins && call.group == ParallelGroup::expert);
    if (is_of_experts(call.group) || prices_->groups[call.group].alone()) continue;
    for (double repeat = 0; repeat < call.repeats; ++repeat)
      gaps.emplace_back(of_device * std::exchange(before, Seconds(0)).value(), std::exchange(waited, false),
                        call.op == network::CollectiveOp::reduce_scatter);
  }
  // What is done behind the last call is done before the first one of the next layer.
  const double done = network::mean_of(gaps) * static_cast<double>(gaps.size());
  gaps.front().seconds += std::max(0.0, left - done);
  gaps.front().together = gaps.front().together || waited;
  return gaps;
}

/// Where a link is sick, only the ranks beyond it are late: the others have done the next work and entered the next
/// call while the late ones are still at theirs (CollectivePrices::saved_in_row()), as far as there is work that hides
/// nothing else. For exchanges of experts see expert_leads.h.
EnumArray<ParallelGroup, Seconds> LayerTimer::price_calls(const PartCost& part) const {
  const CallPrices& prices = *prices_;
  EnumArray<ParallelGroup, network::Gaps> work;
  const auto time_of = [&](const model::CollectiveCall& call) {
    const auto [time, added] = priced(call);
    if (added <= Seconds(0) || is_of_experts(call.group)) return time;
    network::Gaps& of_group = work[call.group];
    if (of_group.empty()) of_group = work_between(part, call.group);
    network::Gaps gaps = of_group;
    // Where none goes backwards, calls are not told apart, and all go the way of this one.
    if (call.op == network::CollectiveOp::reduce_scatter &&
        std::ranges::any_of(gaps, &network::Gap::backwards))
      for (network::Gap& gap : gaps) gap.backwards = !gap.backwards;
    return time - saved_in_row(call, gaps);
  };
  EnumArray<ParallelGroup, Seconds> times = call_times(
      part, prices.setting.system.stack.communication, time_of,
      [&](const model::CollectiveCall& dispatch, const model::CollectiveCall& combine, Seconds between) {
        return std::max(Seconds(0), time_of(combine) - prices.sooner_by_loads(dispatch, combine, between));
      });
  times[ParallelGroup::expert] += crowding(part, prices);
  times[ParallelGroup::expert] -= hidden_by_lead(part, prices);
  for (const PartCost::Overlap& overlap : part.overlaps) {
    Seconds room = overlap.beside;
    times[ParallelGroup::expert] -= hide(overlap.exchange.repeats * prices.time(overlap.exchange), 1, room);
  }
  return times;
}

network::CollectivePrices::Priced LayerTimer::priced(const model::CollectiveCall& call) const {
  const auto ask = [&] { return KnownCall{prices_->priced(call)}; };
  if (prices_->collectives.healthy().plain()) return ask().priced;
  return known_.get({call.op, call.group, call.bytes}, ask).priced;
}

Seconds LayerTimer::saved_in_row(const model::CollectiveCall& call, const network::Gaps& work) const {
  const auto ask = [&] { return prices_->collectives.saved_in_row(prices_->on_stage(call), work); };
  if (prices_->collectives.healthy().plain()) return ask();
  KnownCall& known = known_.at({call.op, call.group, call.bytes}).value;
  if (known.work != work) {
    known.saved = ask();
    known.work = work;
  }
  return known.saved;
}

PassTime LayerTimer::operator()(LayerKind kind, Pass pass) const {
  return segments_time(kind, in_.segments(kind, pass));
}

PassTime LayerTimer::segments_time(LayerKind kind, const Segments& segments) const {
  PassTime time;
  (void)add_drifting(kind, segments, time);
  time[TimeClass::host] = std::max(Seconds(0), segments_launch(in_, kind, segments) - time.total());
  return time;
}

Seconds LayerTimer::add_device(const LayerCost& layer, const Segment& segment, PassTime& time) const {
  const PartCost& part = layer[segment.part];
  time[segment.again ? TimeClass::recompute : TimeClass::compute] += part.device;
  if (!prices_) return Seconds(0);
  const StackProfile::Communication& stack = in_.setting.system.stack.communication;
  EnumArray<ParallelGroup, Seconds> comm = price_calls(part);
  Seconds on_links = comm[ParallelGroup::context];
  for (const model::CollectiveCall& call : part.calls) {
    if (call.group != ParallelGroup::context) continue;
    const network::CollectiveKey asked = prices_->healthy(call);
    on_links -= call.repeats * (prices_->collectives.time_without_faults(asked) -
                                prices_->collectives.healthy().time_on_links(asked));
  }
  comm[ParallelGroup::context] -= spared_of(part);
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    if (comm[group] <= Seconds(0)) continue;
    time[class_of(group)] +=
        comm[group] - hidden_by_attention(stack, group, comm[group], part.attention_core);
  }
  return on_links;
}

Seconds LayerTimer::spared_of(const PartCost& part) const {
  Seconds sum;
  for (const model::CollectiveCall& call : part.calls) {
    if (call.group == ParallelGroup::context) sum += spared_by(call);
  }
  return sum;
}

Seconds LayerTimer::spared_by(const model::CollectiveCall& call) const {
  const auto ask = [&] { return spared_by_drift(call, *prices_); };
  if (prices_->collectives.healthy().plain()) return ask();
  return drift_.get({call.op, call.group, call.bytes, call.repeats}, ask);
}

Seconds LayerTimer::spared(LayerKind kind, const Segments& segments) const {
  PassTime time;
  return add_drifting(kind, segments, time);
}

Seconds LayerTimer::add_drifting(LayerKind kind, const Segments& segments, PassTime& time) const {
  const StackProfile::Communication& stack = in_.setting.system.stack.communication;
  Seconds passes, spared, room;
  boost::container::small_vector<const model::CollectiveCall*, 2> exchanges;
  for (const Segment& segment : segments) {
    const PartCost& part = costs_[kind][segment.part];
    const Seconds before = time[TimeClass::context_comm];
    passes += add_device(costs_[kind], segment, time);
    if (!prices_) continue;
    spared += spared_of(part);
    // What of a later end the attention core hides: all of it where none of the exchange shows.
    if (time[TimeClass::context_comm] <= before) room += stack.context_overlap * part.attention_core;
    for (const model::CollectiveCall& call : part.calls)
      if (call.group == ParallelGroup::context) exchanges.push_back(&call);
  }
  Seconds& shown = time[TimeClass::context_comm];
  if (exchanges.size() > 1) {
    const Seconds more = added_by_turns({exchanges.data(), exchanges.size()}, *prices_);
    spared -= more;
    if (room <= Seconds(0)) shown += more;
  }
  // The links are busy for all of the passes, so a layer takes no less.
  const Seconds busy = std::max(Seconds(0), passes - time.total());
  shown += busy;
  return spared - busy;
}

Seconds LayerTimer::split_experts(LayerKind kind, const Segments& segments) const {
  Seconds sum;
  if (!prices_) return sum;
  for (const Segment& segment : segments) {
    for (const model::CollectiveCall& call : costs_[kind][segment.part].calls)
      if (call.group == ParallelGroup::expert_tensor) sum += call.repeats * prices_->time(call);
  }
  return sum;
}

std::vector<std::vector<Seconds>> LayerTimer::pieces(LayerKind kind, const Segments& segments) const {
  std::vector<std::vector<Seconds>> list;
  for (const Segment& segment : segments) {
    list.push_back(piece_times(
        costs_[kind][segment.part], in_.setting.system.stack.communication,
        [&](const model::CollectiveCall& call) { return prices_ ? prices_->time(call) : Seconds(0); }));
  }
  return list;
}

bool meets_host(const TrainingStep& in, LayerKind kind, Pass pass) {
  return std::ranges::any_of(in.segments(kind, pass),
                             [&](const Segment& segment) { return in.costs[kind][segment.part].meets_host; });
}

PassTime time_segments(const TrainingStep& in, LayerKind kind, const Segments& segments,
                       const network::RankGroups& groups, const network::CollectivePrices* collectives) {
  std::optional<CallPrices> prices;
  if (collectives != nullptr) prices.emplace(CallPrices{in.setting, in.plan, in.turns, groups, *collectives});
  return LayerTimer(in, in.costs, prices).segments_time(kind, segments);
}

}  // namespace shardscape::step
