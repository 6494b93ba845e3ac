// Times passes through layers (device, exposed calls, waits for the host) and puts them together to the passes of
// stages and chunks, and to pairs of passes.
#include "engine/step/layers/layer_timer.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <optional>
#include <vector>

#include "engine/spec/parallel_groups.h"
#include "engine/step/layers/context_drift.h"
#include "engine/step/layers/expert_leads.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/layers/paired_passes.h"
#include "engine/step/layers/sibling_turns.h"

namespace shardscape::step {

namespace {

using GroupTimes = EnumArray<ParallelGroup, Seconds>;

/// Seconds of a part's work that hide no call yet, per call.
Seconds work_of_each(const PartCost& part, const CallPrices& prices) {
  const StackProfile::Communication& stack = prices.setting.system.stack.communication;
  double calls = 0;
  Seconds context;
  boost::container::small_vector<Seconds, 8> beside(part.works.size());
  for (const PartCost::Call& call : part.calls) {
    if (is_of_experts(call.group) || prices.groups[call.group].alone()) continue;
    calls += call.repeats;
    const Seconds all = call.repeats * prices.time(call);
    if (call.group == ParallelGroup::context) context += all;
    if (call.hider >= 0) beside[static_cast<std::size_t>(call.hider)] += all;
  }
  Seconds work =
      part.device - hidden_by_attention(stack, ParallelGroup::context, context, part.attention_core);
  for (std::size_t i = 0; i < beside.size(); ++i) {
    Seconds room = part.works[i];
    work -= hide(beside[i], stack.tensor_overlap, room);
  }
  return (1 / std::max(1.0, calls)) * std::max(Seconds(0), work);
}

/// Times the calls of a part, which may overlap with work of the part under faults. Where a link is sick, only the
/// ranks beyond it are late: the others have done the next work and entered the next call while the late ones are still
/// at theirs. Half of what the fault adds lies beside such work, as far as there is any that hides nothing else, and
/// less where there are few others: of two ranks whose link is sick both ways none is ahead. All calls of a part share
/// that work equally. For exchanges of experts see expert_leads.h.
GroupTimes price_calls(const PartCost& part, const CallPrices& prices) {
  std::optional<Seconds> work;
  const auto time_of = [&](const model::CollectiveCall& call) {
    const Seconds time = prices.time(call);
    const network::RankGroup& group = prices.groups[call.group];
    if (!prices.collectives.has_faults() || is_of_experts(call.group) || group.alone()) return time;
    const Seconds added = prices.collectives.added_by_faults(prices.on_stage(call));
    if (added <= Seconds(0)) return time;
    if (!work) work = work_of_each(part, prices);
    return time - std::min(0.5 * (1 - 2.0 / group.size()) * added, *work);
  };
  GroupTimes times = call_times(part, prices.setting.system.stack.communication, time_of,
                                [&](const model::CollectiveCall& call, Seconds before) {
                                  return prices.collectives.late_combine(
                                      call.bytes, prices.groups[call.group], before, prices.slice);
                                });
  times[ParallelGroup::expert] += crowding(part, prices);
  times[ParallelGroup::expert] -= hidden_by_lead(part, prices);
  for (const PartCost::Overlap& overlap : part.overlaps) {
    Seconds room = overlap.beside;
    times[ParallelGroup::expert] -= hide(overlap.exchange.repeats * prices.time(overlap.exchange), 1, room);
  }
  return times;
}

/// One pass of a pair: its steps, and the layers that the host launches.
struct PassInPair {
  struct Layer {
    Seconds runs, launch;
    std::int64_t exchanges = 0;
  };
  std::vector<PairStep> steps;
  std::vector<Layer> layers;
  std::int64_t exchanges = 0;
};

/// Seconds that a pair takes whatever of its exchanges hides: the host launches the layers of both passes without a
/// stop, in the order in which their exchanges take turns (paired_passes.h).
Seconds launched_together(const PassInPair& back, const PassInPair& ahead) {
  Seconds sum;
  HostLead lead;
  std::int64_t gone_back = 0, gone_ahead = 0;
  for (std::size_t b = 0, f = 0; b < back.layers.size() || f < ahead.layers.size();) {
    const bool turn = gone_back * ahead.exchanges <= gone_ahead * back.exchanges;
    const bool backward = b < back.layers.size() && (turn || f == ahead.layers.size());
    const PassInPair::Layer& layer = backward ? back.layers[b++] : ahead.layers[f++];
    (backward ? gone_back : gone_ahead) += layer.exchanges;
    sum += layer.runs + lead.launch(1, layer.runs, layer.launch);
  }
  return sum;
}

}  // namespace

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
  GroupTimes comm = price_calls(part, *prices_);
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
    if (call.group == ParallelGroup::context) sum += spared_by_drift(call, *prices_);
  }
  return sum;
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

std::vector<std::vector<Seconds>> LayerTimer::pieces(LayerKind kind, const Segments& segments) const {
  std::vector<std::vector<Seconds>> list;
  for (const Segment& segment : segments) {
    list.push_back(piece_times(
        costs_[kind][segment.part], in_.setting.system.stack.communication,
        [&](const model::CollectiveCall& call) { return prices_ ? prices_->time(call) : Seconds(0); }));
  }
  return list;
}

StagePasses StageTimer::passes_through(const LayerRuns& runs) {
  StagePasses passes;
  const Spared less = spared(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LayerRun& run = runs[i];
    const LayerPasses& layer = timed(run.kind);
    passes.forward += run.count * layer.forward;
    passes.forward[TimeClass::host] -= less.forward[i];
    PassTime backward = run.count * backward_of(run.kind);
    Seconds alone = backward.total();
    backward[TimeClass::host] -= less.backward[i];
    passes.cut += run.count * cut_backward_of(run.kind).total() - less.cut[i];
    if (in_.cuts(run.kind)) {
      PassTime weight = run.count * layer.weight;
      alone += weight.total();
      weight[TimeClass::host] -= less.weight[i];
      backward += weight;
      passes.weight += weight.total();
      passes.weight_host += weight[TimeClass::host];
    } else if (in_.splits(run.kind)) {
      passes.weight += run.count * layer.weight.total() - less.weight[i];
    }
    passes.backward += backward;
    passes.backwards[run.kind] += alone;
  }
  const Seconds before = pass_lead(in_);
  passes.forward[TimeClass::host] += before;
  passes.backward[TimeClass::host] += before;
  passes.cut += before;
  return passes;
}

PassTime StageTimer::deferred() {
  if (in_.deferred() == 0) return {};
  return static_cast<double>(in_.deferred()) * timed(kHeadLayer).weight;
}

bool StageTimer::waits_for_host(const LayerRuns& runs) {
  constexpr TimeClass kHost = TimeClass::host;
  return std::ranges::any_of(runs, [&](const LayerRun& run) {
    const LayerPasses& layer = timed(run.kind);
    return layer.forward[kHost] + layer.backward[kHost] + layer.weight[kHost] + layer.input[kHost] >
           Seconds(0);
  });
}

StageTimer::Spared StageTimer::spared(const LayerRuns& runs) {
  Spared less;
  for (auto* const waits : {&less.forward, &less.backward, &less.cut, &less.weight})
    waits->resize(runs.size());
  const auto add = [&](HostLead& lead, std::size_t i, Pass pass, const PassTime& time, Seconds& saved) {
    const double count = runs[i].count;
    const Seconds waits = time[TimeClass::host];
    saved = std::max(Seconds(0),
                     count * waits - lead.launch(count, time.total() - waits, launch_of(runs[i].kind, pass),
                                                 meets_host(in_, runs[i].kind, pass)));
  };
  if (runs.size() == 1 || !waits_for_host(runs)) return less;  // either all of them wait, or none does
  HostLead ahead, back, cut, weights;
  for (std::size_t i = 0; i < runs.size(); ++i)
    add(ahead, i, Pass::forward, timed(runs[i].kind).forward, less.forward[i]);
  for (std::size_t i = runs.size(); i-- > 0;) {
    const LayerKind kind = runs[i].kind;
    add(back, i, Pass::backward, backward_of(kind), less.backward[i]);
    if (in_.pipeline.both_ways())
      add(cut, i, in_.splits(kind) ? Pass::input : Pass::backward, cut_backward_of(kind), less.cut[i]);
    if (in_.splits(kind) || in_.cuts(kind)) add(weights, i, Pass::weight, timed(kind).weight, less.weight[i]);
  }
  return less;
}

Seconds StageTimer::hidden(const LayerRuns& forward, const LayerRuns& backward) {
  const StackProfile::Communication& stack = in_.setting.system.stack.communication;
  const bool exchanges = stack.expert_overlap > 0 && in_.key().dispatches;
  if (!exchanges && !(in_.pipeline.both_ways() && (waits_for_host(forward) || waits_for_host(backward))))
    return Seconds(0);
  PassInPair ahead, back;
  Seconds device;
  const auto add = [&](const LayerWork& work, const PassTime& time, PassInPair& pass) {
    const Seconds runs = time.total() - time[TimeClass::host];
    const Seconds alone = exchanges ? runs - time[TimeClass::expert_comm] : runs;
    device += work.count * runs;
    const std::size_t before = pass.steps.size();
    std::vector<std::vector<Seconds>> pieces;
    if (exchanges) pieces = timer_.pieces(work.kind, in_.segments(work.kind, work.pass));
    for (std::int32_t n = 0; n < work.count; ++n)
      append_pieces(pieces, time[TimeClass::expert_comm], pass.steps);
    const std::int64_t calls =
        std::count_if(pass.steps.begin() + static_cast<std::ptrdiff_t>(before), pass.steps.end(),
                      [](const PairStep& step) { return step.kind == PairStep::Kind::exchange; });
    pass.layers.insert(pass.layers.end(), static_cast<std::size_t>(work.count),
                       {alone, launch_of(work.kind, work.pass), calls / work.count});
    pass.exchanges += calls;
  };
  for (const LayerWork& work : in_.stream(backward, Pass::backward, true))
    add(work, backward_of(work.kind), back);
  for (const LayerWork& work : in_.stream(forward, Pass::forward, false))
    add(work, timed(work.kind).forward, ahead);
  const Seconds least = launched_together(back, ahead);
  const double seconds = exchanges ? pair_up(ahead.steps, back.steps, stack.expert_overlap).hidden : 0;
  device -= Seconds(stack.expert_hidden * seconds);
  const Seconds apart = passes_through(forward).forward.total() + passes_through(backward).backward.total() -
                        2 * pass_lead(in_);
  return std::max(Seconds(0), apart - std::max(device, least));
}

PassTime StageTimer::backward_of(LayerKind kind) {
  const LayerPasses& layer = timed(kind);
  if (!in_.defers(kind)) return layer.backward;
  const double share = in_.deferred_share();
  PassTime backward = share * layer.input;
  if (share < 1) backward += (1 - share) * layer.backward;
  return backward;
}

const PassTime& StageTimer::cut_backward_of(LayerKind kind) {
  const LayerPasses& layer = timed(kind);
  return in_.splits(kind) ? layer.input : layer.backward;
}

Seconds StageTimer::launch_of(LayerKind kind, Pass pass) const {
  const Seconds whole = pass_launch(in_, kind, pass);
  if (pass != Pass::backward || !in_.defers(kind)) return whole;
  const double share = in_.deferred_share();
  return share * pass_launch(in_, kind, Pass::input) + (1 - share) * whole;
}

const LayerPasses& StageTimer::timed(LayerKind kind) {
  std::optional<LayerPasses>& layer = layers_[kind.index()];
  if (!layer) {
    layer = {timer_(kind, Pass::forward), timer_(kind, Pass::backward), {}, {}};
    if (in_.cuts(kind) || in_.defers(kind) || in_.splits(kind)) layer->weight = timer_(kind, Pass::weight);
    if (in_.defers(kind) || in_.splits(kind)) layer->input = timer_(kind, Pass::input);
  }
  return *layer;
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
