// Sums what calls and data-parallel traffic of one stage cost each other where they meet on links, by the formulas of
// the header, and bounds the step from below by its busiest link.
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

/// The share of the priced contention that takes place, since calls and traffic do not meet at random: the median, over
/// 130 random plans of the shipped training stacks, of what execution adds over the full sum (most lie at 0.4 to 0.7).
/// Backward passes, beside which most of the traffic lies, have fewer calls in their time than the mean of all passes.
constexpr double kMet = 0.6;

/// The share of the priced contention that may be wrong. Chosen so that those of these plans are marked whose times
/// differ by more than 5 %; of 2,200 other plans 6 differ that much without a mark.
constexpr double kLeftOpen = 0.8;

/// Share of the gathers of weights that lies beside forward passes: weights are gathered once for forward and once for
/// backward.
constexpr double kGatheredAhead = 0.5;

class ContentionSum {
 public:
  /// `calls`: those of the stage. If `known` is given they are kept for other plans, and `known` has the groups of
  /// ranks.
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

  /// Lists the calls of a stage in all microbatches. Only the calls of blocks meet data-parallel traffic.
  void list_calls(std::int32_t stage) {
    const double m = in_.pipeline.per_chunk();
    for (const LayerRun& run : in_.stage_layers(stage)) {
      std::array<double, kParts> runs{};
      for (const Pass pass : kTrainingPasses) {
        for (const Segment& segment : in_.segments(run.kind, pass))
          ++runs[static_cast<std::size_t>(segment.part)];
      }
      for (std::size_t part = 0; part < kParts; ++part) {
        if (runs[part] > 0)
          list_calls(in_.costs[run.kind].parts[part], m * run.count * runs[part], run.kind.is_block());
      }
    }
    siblings_ = calls_.siblings;
  }

  /// The data-parallel traffic of a stage: beside the passes of each microbatch, and once in a step.
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

  /// Adds what this traffic and the calls beside it add to a step.
  void add_data(ContendedData& data, const TimedStage& step) {
    const double count = in_.pipeline.per_chunk(),
                 overlap = in_.setting.system.stack.communication.data_overlap;
    siblings_ += count * data.beside.siblings;
    if (step.passes <= Seconds(0)) return;
    const Seconds pass = (1 / count) * step.passes;
    if (overlap > 0)
      add_axes(data.beside, 1, overlap * pass, count * (1 + step.bubble), step.passes, kGatheredAhead);
    beside_.forward = forward_;
    for (const Seconds time : added_) beside_.sum += time;
    const Seconds once = data.once.time;
    if (once <= Seconds(0)) return;
    const double shown = std::min(1.0, step.data_tail / once);
    siblings_ += shown * data.once.siblings;
    if (shown < 1) add_axes(data.once, 1 - shown, pass, 1, step.passes, 1);
  }

  /// Raises `added` so that the step lasts as long as its busiest link is busy. Calls alone never need that, but
  /// traffic and the calls that it meets may.
  void bound_by_links(ContendedData& data, const TimedStage& step, Breakdown& added) {
    Seconds now = step.step;
    for (const Seconds time : added) now += time;
    const double count = in_.pipeline.per_chunk();
    if (all_in_turn(data, count) <= now) return;
    boost::container::small_vector<network::CollectiveModel::Asked, 16> operations;
    boost::container::small_vector<Seconds, 16> sending;
    const auto add = [&](const network::CollectiveModel::Asked& asked, Seconds seconds) {
      if (seconds <= Seconds(0)) return;
      operations.push_back(asked);
      sending.push_back(seconds);
    };
    const auto add_call = [&](const ContendedCalls::Sent& sent) {
      const CollectiveCall& call = *calls_.calls[sent.call];
      const RankGroup& group = groups_[call.group];
      for (std::size_t i = 0; shared_ && i < operations.size(); ++i) {
        const network::CollectiveModel::Asked& known = operations[i];
        if (&known.group != &group || known.op != call.op || known.bytes != call.bytes) continue;
        sending[i] += sent.seconds;
        return;
      }
      add({call.op, call.bytes, group}, sent.seconds);
    };
    std::ranges::for_each(calls_.sent, add_call);
    std::ranges::for_each(calls_.ends, add_call);
    for (ContendedData::Sent& sent : data.beside.sent) add(asked(sent), count * on_links(sent));
    for (ContendedData::Sent& sent : data.once.sent) add(asked(sent), on_links(sent));
    const Seconds busiest = collectives_.busiest_link(std::span(operations.data(), operations.size()),
                                                      std::span(sending.data(), sending.size()), now);
    added[TimeClass::data_comm] += std::max(Seconds(0), busiest - now);
  }

  /// The sum as a result. While a pass waits for the host, calls may take longer at no cost: that much is taken off.
  [[nodiscard]] Contention of(const TimedStage& step) const {
    Breakdown added = kMet * added_;
    Seconds sum;
    for (const Seconds time : added) sum += time;
    // Waits are per microbatch; traffic of once a step lies beside one of the microbatches.
    const double count = in_.pipeline.per_chunk();
    const Seconds beside_forward = std::min(beside_.forward, beside_.sum),
                  forward = (kMet / count) * beside_forward,
                  backward = (kMet / count) * (beside_.sum - beside_forward);
    const Seconds once = std::max(Seconds(0), sum - kMet * beside_.sum),
                  once_forward = std::min(once, kMet * (forward_ - beside_.forward)),
                  once_backward = once - once_forward;
    const auto spared_by = [count](Seconds host, Seconds each, Seconds at_once) {
      host = (1 / count) * host;
      return (count - 1) * std::min(host, each) + std::min(host, each + at_once);
    };
    const Seconds spared = spared_by(step.forward_host, forward, once_forward) +
                           spared_by(step.backward_host, backward, once_backward);
    added[TimeClass::host] = -1.0 * spared;
    return {added, std::max(0.0, (siblings_ + kLeftOpen * sum) / step.step)};
  }

 private:
  void add_part(const DataTraffic::Part& part, ContendedData::Traffic& traffic) {
    const RankGroup& shard = groups_[part.group];
    if (part.bytes <= Bytes(0) || shard.alone()) return;
    const Seconds time = collectives_.time(part.op, part.bytes, shard, part.calls);
    traffic.siblings += time - within(part.op, part.bytes, shard, part.calls, time);
    traffic.time += time;
    traffic.sent.push_back({part, time});
  }

  /// Adds what a share of the traffic costs beside `window` seconds of passes, `often` times in a step. `passes`:
  /// seconds of all passes that the calls belong to. `gathered_ahead`: the share of gathers beside forward passes;
  /// everything else lies beside backward passes.
  void add_axes(ContendedData::Traffic& traffic, double share, Seconds window, double often, Seconds passes,
                double gathered_ahead) {
    Seconds room = window, data, late, left;
    Breakdown slowed;
    for (ContendedData::Sent& sent : traffic.sent) {
      const ContendedCalls::Meeting& meeting = meeting_of(sent);
      // How much of the traffic gets done beside passes, relative to what the same time would do alone.
      const double done = 1 + meeting.done / passes;
      const Seconds traffic_time = share * on_links(sent);
      const Seconds together = done * room > traffic_time ? (1 / done) * traffic_time : room;
      data += traffic_time;
      room -= together;
      left += traffic_time - done * together;
      const double beside = together / passes;
      slowed += (often * beside) * meeting.longer;
      late += beside * meeting.late;
      if (sent.part.op == network::CollectiveOp::all_gather)
        forward_ += (gathered_ahead * often * beside) * meeting.late;
    }
    const Seconds before = std::max(window, data);
    const Seconds now = std::max(window + late, window - room + late + left);
    added_ += slowed;
    added_[TimeClass::data_comm] += often * (now - before - late);
  }

  /// Time of all operations one after the other, which no link can be busy for longer than.
  [[nodiscard]] Seconds all_in_turn(const ContendedData& data, double count) const {
    return count * data.beside.time + data.once.time + calls_.time;
  }

  Seconds on_links(ContendedData::Sent& sent) {
    const DataTraffic::Part& part = sent.part;
    if (!sent.on_links)
      sent.on_links = collectives_.time_on_links(part.op, part.bytes, groups_[part.group], part.calls);
    return *sent.on_links;
  }

  void list_calls(const PartCost& part, double count, bool meets) {
    Seconds context;
    const std::size_t first = calls_.sent.size();
    for (const CollectiveCall& call : part.calls) {
      const std::size_t number = number_of(call);
      const OneCall& one = listed_[number];
      const ContendedCalls::Sent sent{number, count * call.repeats * one.on_links, 1};
      calls_.time += sent.seconds;
      if (!meets) {
        calls_.ends.push_back(sent);
        continue;
      }
      calls_.siblings += count * call.repeats * one.siblings;
      calls_.sent.push_back(sent);
      if (call.group == ParallelGroup::context) context += call.repeats * one.time;
    }
    if (context <= Seconds(0)) return;
    // The share of a longer exchange that the attention core does not hide, measured on an exchange twice as long.
    const StackProfile::Communication& stack = in_.setting.system.stack.communication;
    const auto hidden = [&](Seconds time) {
      return hidden_by_attention(stack, ParallelGroup::context, time, part.attention_core);
    };
    const double shown = 1 - (hidden(2 * context) - hidden(context)) / context;
    for (std::size_t i = first; i < calls_.sent.size(); ++i)
      if (calls_.calls[calls_.sent[i].call]->group == ParallelGroup::context) calls_.sent[i].shown = shown;
  }

  /// A call's time, the part of it that is due to groups of other stages, and its time on links. The passes of a stage
  /// have few different calls, so that times are kept; the plain path asks for each of them.
  struct OneCall {
    Seconds time, siblings, on_links;
  };
  static bool alike(const CollectiveCall& one, const CollectiveCall& other) {
    return one.group == other.group && one.op == other.op && one.bytes == other.bytes;
  }
  std::size_t number_of(const CollectiveCall& call) {
    for (std::size_t i = 0; shared_ && i < listed_.size(); ++i)
      if (alike(*calls_.calls[i], call)) return i;
    const RankGroup& group = groups_[call.group];
    const Seconds time = collectives_.time(call.op, call.bytes, group);
    calls_.calls.push_back(&call);
    listed_.push_back({time, time - within(call.op, call.bytes, group, 1, time),
                       collectives_.time_on_links(call.op, call.bytes, group)});
    return listed_.size() - 1;
  }

  [[nodiscard]] network::CollectiveModel::Asked asked(const ContendedData::Sent& sent) const {
    return {sent.part.op, sent.part.bytes, groups_[sent.part.group], sent.part.calls};
  }

  ContendedCalls::Meeting& meeting_of(ContendedData::Sent& sent_beside) {
    const network::CollectiveModel::Asked data = asked(sent_beside);
    // Without kept sets, a new set of links may have the address of an earlier one.
    if (!shared_) calls_.meetings.clear();
    if (!shared_ || sent_beside.links == nullptr) sent_beside.links = &collectives_.tile_links(data);
    for (ContendedCalls::Meeting& known : calls_.meetings)
      if (known.links == sent_beside.links) return known;
    ContendedCalls::Meeting& meeting = calls_.meetings.emplace_back();
    meeting.links = sent_beside.links;
    boost::container::small_vector<std::optional<network::KeptPaces>, 8> paces(calls_.calls.size());
    for (const ContendedCalls::Sent& sent : calls_.sent) {
      if (sent.seconds <= Seconds(0)) continue;
      const CollectiveCall& call = *calls_.calls[sent.call];
      std::optional<network::KeptPaces>& both = paces[sent.call];
      if (!both) both = collectives_.paces_together({call.op, call.bytes, groups_[call.group]}, data);
      const double kept = both->one, theirs = both->other;
      const Seconds longer = (sent.shown * (1 / kept - 1)) * sent.seconds;
      meeting.longer[class_of(call.group)] += longer;
      meeting.late += longer;
      meeting.done += longer - ((1 - theirs) / kept) * sent.seconds;
    }
    return meeting;
  }

  Seconds within(network::CollectiveOp op, Bytes bytes, const RankGroup& group, double calls, Seconds all) {
    if (in_.plan.pipeline == 1) return all;
    return collectives_.time_within_slice(op, bytes, group, calls,
                                          {in_.plan.pipeline, layout_.stride(PlanAxis::pipeline)});
  }

  const TrainingStep& in_;
  network::CollectiveModel& collectives_;
  PlanLayout layout_;
  std::optional<network::RankGroups> own_;
  const network::RankGroups& groups_;
  ContendedCalls& calls_;
  bool shared_;
  boost::container::small_vector<OneCall, 8> listed_;
  Seconds siblings_;  ///< time due to groups of other stages, of the calls and of traffic beside them
  Breakdown added_;
  Seconds forward_;  ///< the part of added_ in forward passes
  struct {
    Seconds sum, forward;
  } beside_;  ///< the two values above of the traffic of every microbatch alone
};

}  // namespace

Contention contention_of(const TrainingStep& in, const TimedStage& step,
                         network::CollectiveModel& collectives, LayerTimes* known, StageDataCosts* data) {
  const bool shared = known != nullptr;
  std::vector<ContendedCalls> own;
  std::vector<ContendedCalls>& listed = shared ? known->contended : own;
  const auto index = static_cast<std::int32_t>(step.stage);
  const bool first = in.first(index), last = in.last(index);
  auto calls = std::ranges::find_if(
      listed, [&](const ContendedCalls& kept) { return kept.of(in.layers[step.stage], first, last); });
  const bool fresh = calls == listed.end();
  if (fresh) {
    listed.push_back({in.layers[step.stage], first, last});
    calls = std::prev(listed.end());
  }
  ContentionSum sum(in, collectives, *calls, known);
  if (fresh) sum.list_calls(index);
  std::optional<ContendedData> alone;
  std::optional<ContendedData>& of_stage = shared ? data->of(in, index).contended : alone;
  if (!of_stage) of_stage = sum.data_of(index);
  sum.add_data(*of_stage, step);
  Contention contention = sum.of(step);
  sum.bound_by_links(*of_stage, step, contention.added);
  return contention;
}

}  // namespace shardscape::step
