// Sums what calls and data-parallel traffic of one stage cost each other where they meet on links, by the formulas of
// the header, and bounds the step from below by its busiest link.
#include "engine/step/training/contention.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "engine/step/layers/context_drift.h"
#include "engine/step/training/data_traffic.h"
#include "engine/step/training/sent_in_step.h"

namespace shardscape::step {

namespace {

using model::CollectiveCall;

/// The share of the priced contention that takes place, since calls and traffic do not meet at random: the median, over
/// 235 random plans of the shipped training stacks, of what execution adds over the full sum (0.6 to 1.2 of four in
/// five).
constexpr double kMet = 0.9;

/// What of the priced contention may be wrong, as a share of what calls take longer: of exchanges of context groups,
/// and of other calls, which are short and many. Of calls of tensor groups that come apart, the share of what those of
/// the same stage cost each other. Chosen together with the shares in price_training.cc on 2,669 random plans
/// of all shipped training stacks on nodes of NVIDIA's, of which execution moves four by more than 5 %: all of them are
/// marked, and 0.8 % of all.
constexpr double kContextOpen = 0.09, kCallsOpen = 0.4, kApartOpen = 0.1;

/// The share of what early combines may make dispatches to busy experts longer that is left open: none of it is priced.
/// Of 2,000 random plans with unequal loads 24 are marked for it, six of which execution moves by 3.5 to 17 %.
constexpr double kCrowdedOpen = 0.8;

/// The share of what messages between chunks and traffic of once a step cost each other that may be wrong: of 377
/// random interleaved plans of Llama 3.1 8B and 70B on 64 A100, H100 and B200, with 1 to 16 microbatches for each
/// stage, 22 are off by more than 5 % without that cost and 7 with it (2.5 % at the 95th percentile, no bias); of these
/// five are marked, and 20 of all.
constexpr double kOnceOpen = 0.6;

/// The share of what messages cost calls that may be wrong: of 8,430 random plans of dense models and of experts on 8
/// to 64 GPUs of NVIDIA's, three that are not marked are off by more than 5 % (5.8 % at most), and of one half of them
/// nine without that cost. Of interleaved plans with many chunks whose tensor groups lie across nodes execution adds up
/// to 2.1 of it: two of 150 such plans on dgx-h800 are 5.5 and 6.2 % short and not marked.
constexpr double kMessagesOpen = 0.5;

/// By how much what messages show is more where those of both ways over a boundary are under way together, as a share
/// of it: of 278 random plans of dualpipe in which it is more than 0.5 % of the step, the least squares are 0.37 where
/// messages block their senders and 0.59 where they do not. One of them was 11.5 % too short and not marked without
/// that cost; with it, it is 4 % too short and marked, as half of the cost may be wrong.
constexpr double kBothWays = 0.5, kBothWaysOpen = 0.5;

/// The share of what groups of the same stage cost each other's calls of tensor groups that is spared, where they come
/// apart. Two members of a context group in a domain have one hop between them to come apart by, more have several: of
/// random plans on a torus whose ranks drift and whose context groups show more than kWorthDrift, 86 with two members
/// in a domain are spared 0.09 of it in the median (a tenth 0.03 or less, a tenth 0.27 or more), 41 with more 0.36
/// (0.14 and 0.6), when less was counted of what is sent once in a step; of 31 fresh ones now 0.37 (0.18 and 0.98). 0.4
/// keeps ten that differ most from their execution within 4.2 % of it.
constexpr double kPairsApartSpared = 0.1, kApartSpared = 0.4;
double apart_spared(double members) { return members > 2 ? kApartSpared : kPairsApartSpared; }

/// The least shares of a step: of messages beside traffic for these to be looked at, and of what exchanges of context
/// groups show for groups of the same stage to come apart.
constexpr double kWorthMeeting = 1e-3, kWorthDrift = 0.01;

/// What groups along the context axis cost each other in an operation.
Seconds cost_along_context(const ParallelPlan& plan, network::CollectiveKey asked,
                           const network::CollectivePrices& collectives) {
  const Seconds at_once = collectives.time_without_faults(asked);
  asked.slice = {{plan.context, network::PlanLayout(plan).stride(PlanAxis::context)}, 0};
  return std::max(Seconds(0), at_once - collectives.time_within_slice(asked).most);
}

class ContentionSum {
 public:
  /// `calls`: those of the stage, kept for other plans if these share them.
  ContentionSum(const StepMachine& machine, std::size_t stage, ContendedCalls& calls)
      : in_(machine.in),
        collectives_(machine.collectives),
        prices_(machine.calls_of(stage, collectives_)),
        groups_(machine.groups),
        calls_(calls),
        shared_(machine.shared != nullptr || collectives_.has_faults()),
        slowed_(collectives_.has_faults() && (machine.shared == nullptr || machine.shared->id == 0)) {}

  /// Lists the calls of these layers in all microbatches. Only the calls of blocks meet data-parallel traffic.
  void list_calls(const LayerRuns& runs) {
    const double m = in_.pipeline.per_chunk();
    in_.each_part(runs, [&](const LayerRun& run, Pass pass, const PartCost& part) {
      list_calls(part, m * run.count, pass, run.kind.is_block());
    });
  }

  /// The data-parallel traffic of a stage: beside the passes of each microbatch, and once in a step.
  [[nodiscard]] ContendedData data_of(std::int32_t stage) {
    ContendedData data;
    for (const DataTraffic::Part& part : data_traffic(in_, stage).parts)
      add_part(part, part.once ? data.once : data.beside);
    return data;
  }

  /// Adds what this traffic and the calls beside it add to a step.
  void add_data(ContendedData& data, const TimedStage& step) {
    const double count = in_.pipeline.per_chunk(),
                 overlap = in_.setting.system.stack.communication.data_overlap;
    if (step.passes <= Seconds(0)) return;
    // What calls of a pass may take longer at no cost, of what is priced of it. Traffic of once a step lies beside one
    // of the microbatches, with what traffic beside all of them leaves.
    Seconds forward_wait = (1 / (kMet * count)) * step.forward_host,
            backward_wait = (1 / (kMet * count)) * step.backward_host;
    const auto add = [&](ContendedData::Traffic& traffic, Pass pass, double share, double overlapped,
                         double often) {
      const bool forward = pass == Pass::forward;
      const Seconds passes = forward ? step.forward : step.backward;
      const bool sends = std::ranges::any_of(
          traffic.sent, [&](const ContendedData::Sent& sent) { return sent.part.pass == pass; });
      if (!sends || passes <= Seconds(0)) return Seconds(0);
      boost::container::small_vector<Seconds, 8> windows(1, overlapped / count * passes);
      if (&traffic == &data.beside && !step.chunks.empty()) {
        windows.clear();
        for (const ChunkPasses& chunk : step.chunks)
          windows.push_back(overlapped * chunk.work(pass, in_.cuts()));
      }
      const std::span<const Seconds> all(windows.data(), windows.size());
      return add_axes(traffic, {pass, passes, all, forward ? forward_wait : backward_wait}, share, often,
                      &traffic == &data.once);
    };
    for (const Pass pass : {Pass::forward, Pass::backward})
      if (overlap > 0) add(data.beside, pass, 1, overlap, count * (1 + step.bubble));
    const Seconds hidden = data.once.time - step.data_tail;
    if (hidden <= Seconds(0)) return;
    Seconds gather;
    for (const ContendedData::Sent& sent : data.once.sent)
      if (sent.part.pass == Pass::forward) gather += sent.time;
    const Seconds beside_forward = std::min(hidden, step.gather_hidden);
    // Of what turns spare at the end it is not told whether gather or gradients, so the latter may seem to hide more.
    const auto share_of = [](Seconds part, Seconds all) {
      return all > Seconds(0) ? std::min(1.0, part / all) : 0;
    };
    const Seconds early = add(data.once, Pass::forward, share_of(beside_forward, gather), 1, 1);
    const Seconds late =
        add(data.once, Pass::backward, share_of(hidden - beside_forward, data.once.time - gather), 1, 1);
    // The first microbatch goes down through the forwards of all stages and the last one comes back through the
    // backwards of those behind, one after the other, and each of these passes meets the traffic of its own stage.
    const auto others = static_cast<double>(in_.layers.size() - 1), stage = static_cast<double>(step.stage);
    if (in_.pipeline.both_ways()) return;
    added_[TimeClass::bubble] += others * early + (others - stage) * late;
  }

  /// Time of all operations one after the other, which no link can be busy for longer than.
  [[nodiscard]] Seconds all_in_turn(const ContendedData& data) const {
    return in_.pipeline.per_chunk() * data.beside.time + data.once.time + calls_.time;
  }

  /// For how long the operations of a stage keep its busiest link busy; 0 where none is busy for longer than `beyond`.
  [[nodiscard]] Seconds busiest_link(ContendedData& data, std::size_t stage, Seconds beyond) {
    if (all_in_turn(data) <= beyond) return Seconds(0);
    const Operations all = operations(data, stage);
    return collectives_.healthy().busiest_link(std::span(all.keys.data(), all.keys.size()),
                                               std::span(all.seconds.data(), all.seconds.size()), beyond);
  }

  /// All operations of a stage in passes.
  [[nodiscard]] SiblingTimes in_passes(const ContendedData& data) const {
    SiblingTimes passes = calls_.siblings;
    const double m = in_.pipeline.per_chunk();
    for (const ParallelGroup group : enum_values<ParallelGroup>()) {
      const AmongSiblings& each = data.beside.siblings[group];
      passes[group] += {m * each.time, m * each.others, m * each.in_use};
    }
    return passes;
  }

  /// The share of the step for which messages between stages are under way beside traffic of every microbatch that
  /// crosses the same links: either may take that much longer.
  [[nodiscard]] double messages_beside(const ContendedData& data, const TimedStage& step) const {
    const double traffic = in_.pipeline.per_chunk() * data.beside.time / step.step;
    const double share = step.messages / step.step * std::min(1.0, traffic);
    return share >= kWorthMeeting && meets_messages(data.beside) ? share : 0;
  }

  /// By how much messages between stages make calls longer that they meet on links: those of the stages whose calls
  /// meet them most, since the others wait for these.
  [[nodiscard]] Breakdown calls_beside_messages(const TimedStage& step) {
    Breakdown most;
    const bool blocks = !in_.setting.system.stack.communication.pipeline_async;
    const double share = step.messages / step.step;
    if (blocks || share * (calls_.time / step.step) < kWorthMeeting) return most;
    const double longest = std::ranges::max(step.transfers);
    each_boundary([&](network::OperationCosts& boundary, std::size_t number) {
      const double seconds = step.transfers.size() == 1 ? longest : step.transfers[number];
      Breakdown longer;
      for (const ContendedCalls::Sent& sent : calls_.sent) {
        const CollectiveCall& call = *calls_.calls[sent.call].call;
        const double kept = collectives_.healthy().paces_together(prices_.healthy(call), boundary).one;
        longer[class_of(call.group)] += share * (seconds / longest) * (1 / kept - 1) * sent.seconds;
      }
      if (longer.total() > most.total()) most = longer;
    });
    return most;
  }

  /// What messages cost each other where forwards of one way and backwards of the other leave a stage for the same
  /// neighbour at once.
  [[nodiscard]] Seconds messages_both_ways(const TimedStage& step) const {
    return in_.pipeline.both_ways() ? kBothWays * step.messages_shown : Seconds(0);
  }

  /// What messages between the chunks of an interleaved schedule and hidden traffic of once a step cost each other.
  [[nodiscard]] Seconds messages_beside_once(const ContendedData& data, const TimedStage& step) const {
    const Seconds hidden = data.once.time - step.data_tail, shown = step.messages_shown;
    if (in_.pipeline.virtual_stages == 1 || in_.pipeline.both_ways() || hidden <= Seconds(0) ||
        shown <= Seconds(0))
      return Seconds(0);
    const Seconds cost = (hidden / (shown + hidden)) * shown;
    return cost >= kWorthMeeting * step.step && meets_messages(data.once) ? cost : Seconds(0);
  }

  /// The share of a step by which traffic of the slowest stage may be longer than that of the stage which ends last.
  [[nodiscard]] double uneven_stages(const ContendedData& data, const TimedStage& step) const {
    Seconds beside, once;
    for (const ContendedData::Sent& sent : data.beside.sent) beside += in_.pipeline.per_chunk() * sent.uneven;
    for (const ContendedData::Sent& sent : data.once.sent) once += sent.uneven;
    return (beside + std::min(once, step.data_tail)) / step.step;  // of what goes once, what shows
  }

  /// The sum as a result.
  [[nodiscard]] Contention of(const TimedStage& step, double open_share) {
    Breakdown priced = kMet * added_;
    // Traffic beside all passes goes over the ranks of context groups too, and holds together those that would drift.
    const double members = in_.plan.context > 1 && !sends_beside_passes(in_)
                               ? drifting_members(in_.setting.system.fabric, groups_[ParallelGroup::context])
                               : 1;
    const bool drift = members > 1;
    const Seconds apart = drift ? calls_apart(step) : Seconds(0);
    const Seconds calls = priced[TimeClass::tensor_comm] + priced[TimeClass::expert_comm];
    Seconds open = kCallsOpen * calls + kApartOpen * apart + kCrowdedOpen * calls_.crowded;
    // When exchanges whose ranks drift meet traffic of once a step is not known.
    if (drift) {
      for (const Seconds time : priced) open += time;
      open -= calls;
    } else {
      open += kContextOpen * priced[TimeClass::context_comm];
    }
    priced[TimeClass::tensor_comm] -= apart_spared(members) * apart;
    return {priced, std::max(0.0, open / step.step) + open_share};  // rounding may leave less than nothing
  }

  /// The operations of the stage in a step.
  [[nodiscard]] Operations operations(ContendedData& data, std::size_t stage) {
    const double count = in_.pipeline.per_chunk();
    Operations all;
    const auto add = [&](const network::CollectiveKey& asked, Seconds seconds) {
      if (seconds <= Seconds(0)) return;
      all.keys.push_back(asked);
      all.seconds.push_back(seconds);
    };
    boost::container::small_vector<std::optional<std::size_t>, 8> place(calls_.calls.size());  // in `all`
    const auto add_call = [&](const ContendedCalls::Sent& sent) {
      if (place[sent.call]) {
        all.seconds[*place[sent.call]] += sent.seconds;
        return;
      }
      if (sent.seconds > Seconds(0)) place[sent.call] = all.keys.size();
      add(prices_.healthy(*calls_.calls[sent.call].call), sent.seconds);
    };
    std::ranges::for_each(calls_.sent, add_call);
    std::ranges::for_each(calls_.ends, add_call);
    // Groups of stages with less to send keep links busy for less.
    const auto busy = [&](ContendedData::Sent& sent) {
      if (sent.others <= Seconds(0)) return on_links(sent);
      return on_links(sent) - (1 - sent_by_others(in_, stage, sent.part.group).least) * sent.others;
    };
    for (ContendedData::Sent& sent : data.beside.sent) add(sent.part.key(groups_), count * busy(sent));
    for (ContendedData::Sent& sent : data.once.sent) add(sent.part.key(groups_), busy(sent));
    return all;
  }

 private:
  /// Calls use(boundary, its number) for each boundary between stages.
  template <class Use>
  void each_boundary(const Use& use) const {
    const network::HealthyCosts& healthy = collectives_.healthy();
    const network::RankGroup& stages = groups_[ParallelGroup::pipeline];
    for (std::int32_t b = 0; b + (in_.pipeline.wraps() ? 0 : 1) < in_.plan.pipeline; ++b)
      use(healthy.boundary(healthy.boundaries(stages), stages, b), static_cast<std::size_t>(b));
  }

  /// Whether traffic uses links that messages between stages use.
  [[nodiscard]] bool meets_messages(const ContendedData::Traffic& traffic) const {
    bool any = false;
    each_boundary([&](network::OperationCosts& boundary, std::size_t /*number*/) {
      any = any || std::ranges::any_of(traffic.sent, [&](const ContendedData::Sent& sent) {
              return collectives_.healthy().meet(boundary, sent.part.key(groups_));
            });
    });
    return any;
  }

  void add_part(const DataTraffic::Part& part, ContendedData::Traffic& traffic) {
    const network::CollectiveKey asked = part.key(groups_);
    if (asked.nothing()) return;
    const network::CollectiveKey own = part.key(groups_, prices_.slice);
    const Seconds time = part.once ? collectives_.time(own) : collectives_.time_in_row(own),
                  others = prices_.cost_of_siblings(asked);
    if (others > Seconds(0)) {
      const Seconds on_links = collectives_.healthy().time_on_links(asked);
      traffic.siblings[part.group] += {on_links, others, collectives_.healthy().most_use(asked) * on_links};
    }
    traffic.time += time;
    traffic.sent.push_back({part, time, others, prices_.uneven_stages(asked)});
  }

  /// A pass beside traffic.
  struct Beside {
    Pass pass;
    Seconds passes;  ///< of all passes of this kind in a step, whose calls the traffic meets
    std::span<const Seconds> windows;  ///< in one of them, each with an equal part of the traffic
    Seconds& wait;  ///< for which it waits for the host, so that calls may take longer at no cost
  };
  /// Adds what a share of the traffic beside one pass costs, `often` times in a step, and takes from its wait what
  /// calls take longer. Returns how much later the pass ends because of its calls.
  Seconds add_axes(ContendedData::Traffic& traffic, const Beside& of, double share, double often, bool once) {
    const auto& [pass, passes, windows, wait] = of;
    Seconds data, longer_in_all, lost;  // in the mean over the traffic, whose parts share the pass evenly
    Breakdown longer;
    for (ContendedData::Sent& sent : traffic.sent) {
      if (sent.part.pass != pass) continue;
      const Seconds traffic_time = share * (sent.time - spared(sent, once));
      if (traffic_time <= Seconds(0)) continue;
      data += traffic_time;
      const ContendedCalls::Meeting& meeting = meeting_of(sent);
      const double sends = traffic_time / sent.time * on_links(sent).value();
      for (const ParallelGroup group : enum_values<ParallelGroup>()) {
        const double unspared = sends * (1 - spared_share(group));
        longer[class_of(group)] += unspared * meeting.longer[group];
        longer_in_all += unspared * meeting.longer[group];
        lost += unspared * meeting.lost[group];
      }
    }
    if (data <= Seconds(0)) return Seconds(0);
    // While the pass waits for the host, its calls may take longer; the traffic takes longer all the same.
    const Seconds sent = 1.0 / static_cast<double>(windows.size()) * data;
    Seconds later;
    for (const Seconds window : windows) {
      const double met = window / passes / data.value();
      const Seconds waits = std::min(wait, window), most_late = met * longer_in_all,
                    done = std::max(Seconds(0), window + most_late - std::min(most_late, waits) - met * lost);
      const double beside = sent < done ? sent / done : 1;  // the share of it in which there is traffic
      const Seconds late = beside * most_late, hidden = std::min(late, waits);
      added_ += (often * beside * met) * longer;
      added_[TimeClass::host] -= often * hidden;
      added_[TimeClass::data_comm] +=
          often * (window + std::max(Seconds(0), sent - done) - std::max(window, sent));
      wait -= hidden;
      later += late - hidden;
    }
    return later;
  }

  /// What groups of the same stage cost each other's calls of tensor groups where the ranks of a context group drift.
  Seconds calls_apart(const TimedStage& step) {
    if (in_.plan.tensor == 1 || step.shown[TimeClass::context_comm] <= kWorthDrift * step.step)
      return Seconds(0);
    if (calls_.apart) return *calls_.apart;
    Seconds& sum = calls_.apart.emplace();
    const auto longer = [&](const ContendedCalls::Call& of) {  // by so many times its time on links
      const Seconds cost = cost_along_context(in_.plan, prices_.healthy(*of.call), collectives_);
      return cost <= Seconds(0) ? 0.0 : cost / of.on_links;
    };
    boost::container::small_vector<std::optional<double>, 8> known(calls_.calls.size());
    for (const ContendedCalls::Sent& sent : calls_.sent) {
      const ContendedCalls::Call& of = calls_.calls[sent.call];
      if (of.call->group != ParallelGroup::tensor) continue;
      std::optional<double>& of_call = known[sent.call];
      if (!of_call) of_call = longer(of);
      sum += *of_call * sent.seconds;
    }
    return sum;
  }

  /// The share of what calls take that they are spared where groups of other stages take turns.
  [[nodiscard]] double spared_share(ParallelGroup group) const {
    const AmongSiblings& among = calls_.siblings[group];
    if (in_.turns == nullptr || among.others <= Seconds(0)) return 0;
    return in_.turns->beside[group] * (among.others / among.time);
  }

  /// What a part of the traffic is spared because groups of other stages take turns.
  [[nodiscard]] Seconds spared(const ContendedData::Sent& sent, bool once) const {
    if (in_.turns == nullptr || !in_.turns->any) return Seconds(0);
    return (once ? in_.turns->at_end[sent.part.group] : in_.turns->beside[sent.part.group]) * sent.others;
  }

  Seconds on_links(ContendedData::Sent& sent) {
    if (sent.on_links) return *sent.on_links;
    sent.on_links = collectives_.healthy().time_on_links(sent.part.key(groups_));
    if (collectives_.has_faults())
      *sent.on_links += sent.time - collectives_.without_faults().time(sent.part.key(groups_));
    return *sent.on_links;
  }

  void list_calls(const PartCost& part, double count, Pass pass, bool meets) {
    Seconds context;
    if (loads_differ(in_.setting.model, in_.setting.workload)) {
      each_combine(
          part, [&](const CollectiveCall& call) { return prices_.time(call); },
          [&](const CollectiveCall& dispatch, const CollectiveCall& combine, Seconds work) {
            calls_.crowded += count * collectives_.crowded_by_loads(prices_.healthy(dispatch),
                                                                    prices_.healthy(combine), work);
          });
    }
    const std::size_t first = calls_.sent.size();
    for (const CollectiveCall& call : part.calls) {
      const std::size_t number = number_of(call);
      const ContendedCalls::Call& one = calls_.calls[number];
      const double often = count * call.repeats;
      const ContendedCalls::Sent sent{number, often * one.on_links, 1, pass, often * one.siblings};
      calls_.time += sent.seconds;
      if (!meets) {
        calls_.ends.push_back(sent);
        continue;
      }
      calls_.siblings[call.group] += {sent.seconds, sent.others, one.most_use * sent.seconds};
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
      if (calls_.calls[calls_.sent[i].call].call->group == ParallelGroup::context)
        calls_.sent[i].shown = shown;
  }

  static bool alike(const CollectiveCall& one, const CollectiveCall& other) {
    return one.group == other.group && one.op == other.op && one.bytes == other.bytes;
  }
  /// The passes of a stage have few different calls, so that they are kept; the plain path asks for each of them.
  std::size_t number_of(const CollectiveCall& call) {
    for (std::size_t i = 0; shared_ && i < calls_.calls.size(); ++i)
      if (alike(*calls_.calls[i].call, call)) return i;
    const network::CollectiveKey asked = prices_.healthy(call);
    const Seconds siblings = prices_.cost_of_siblings(asked);
    const auto [time, added] = collectives_.priced(prices_.on_stage(call));
    calls_.calls.push_back({&call, time, siblings, collectives_.healthy().time_on_links(asked) + added,
                            siblings > Seconds(0) ? collectives_.healthy().most_use(asked) : 1});
    return calls_.calls.size() - 1;
  }

  ContendedCalls::Meeting& meeting_of(ContendedData::Sent& sent_beside) {
    const network::CollectiveKey data = sent_beside.part.key(groups_);
    if (!sent_beside.way) sent_beside.way = collectives_.healthy().way_number(data);
    // Paces of calls that faults slow depend on how much longer this part of the traffic takes.
    const bool once = slowed_ && sent_beside.part.once;
    const Bytes bytes = slowed_ ? sent_beside.part.bytes : Bytes(0);
    const double calls = slowed_ ? sent_beside.part.calls : 0;
    for (ContendedCalls::Meeting& known : calls_.meetings) {
      if (known.way == *sent_beside.way && known.pass == sent_beside.part.pass && known.once == once &&
          known.bytes == bytes && known.calls == calls)
        return known;
    }
    ContendedCalls::Meeting& meeting = calls_.meetings.emplace_back(
        ContendedCalls::Meeting{*sent_beside.way, sent_beside.part.pass, once, bytes, calls});
    boost::container::small_vector<std::optional<network::KeptPaces>, 8> paces(calls_.calls.size());
    std::optional<network::LinkLoads> of_data;  // on sick links
    for (const ContendedCalls::Sent& sent : calls_.sent) {
      if (sent.pass != meeting.pass || sent.seconds <= Seconds(0)) continue;
      const ContendedCalls::Call& of = calls_.calls[sent.call];
      const CollectiveCall& call = *of.call;
      std::optional<network::KeptPaces>& both = paces[sent.call];
      if (!both) {
        both = collectives_.healthy().paces_together(prices_.healthy(call), data);
        const network::LinkLoads of_call =
            slowed_ ? collectives_.sick_loads(prices_.healthy(call), of.on_links) : network::LinkLoads();
        if (!of_call.empty()) {
          if (!of_data) of_data = collectives_.sick_loads(data, on_links(sent_beside));
          const network::KeptPaces sick = kept_paces(of_call, *of_data);
          both->one = std::min(both->one, sick.one);
          both->other = std::min(both->other, sick.other);
        }
      }
      const double kept = both->one, theirs = both->other;
      const Seconds longer = (sent.shown * (1 / kept - 1)) * sent.seconds;
      meeting.longer[call.group] += longer;
      meeting.lost[call.group] += ((1 - theirs) / kept) * sent.seconds;
    }
    return meeting;
  }

  const TrainingStep& in_;
  const network::CollectivePrices& collectives_;
  CallPrices prices_;
  const network::RankGroups& groups_;
  ContendedCalls& calls_;
  bool shared_;
  bool slowed_;  ///< whether faults may slow the calls; `shared` ones take what they take on healthy links
  Breakdown added_;
};

/// Returns use(sum, traffic) of a stage: of the calls that share its links, and of its data-parallel traffic. What
/// plans share is read, or made where it is new.
template <class Use>
auto with_stage(const StepMachine& machine, std::size_t number, const Use& use) {
  const auto stage = static_cast<std::int32_t>(number);
  ShortMemo<StageContents, ContendedCalls> own;
  const auto [calls, fresh] =
      (machine.shared != nullptr ? machine.shared->contended : own).at(machine.in.contents(stage));
  ContentionSum sum(machine, number, calls);
  if (fresh) sum.list_calls(machine.in.stage_layers(stage));
  std::optional<DataCosts> own_data;
  std::optional<ContendedData>& data = machine.data_of(number, own_data).contended;
  if (!data) data = sum.data_of(stage);
  return use(sum, *data);
}

}  // namespace

Seconds spared_apart(const ParallelPlan& plan, const network::CollectiveKey& asked,
                     const network::CollectivePrices& collectives) {
  if (plan.context == 1 || plan.tensor == 1) return Seconds(0);
  return kApartSpared * cost_along_context(plan, asked, collectives);
}

bool beside_passes_slowed(const StepMachine& machine, std::size_t stage) {
  const network::CollectivePrices& sick = machine.collectives;
  const network::Slice slice = machine.calls_of(stage, sick).slice;
  return std::ranges::any_of(
      data_traffic(machine.in, static_cast<std::int32_t>(stage)).parts, [&](const DataTraffic::Part& part) {
        return !part.once && sick.added_by_faults(part.key(machine.groups, slice)) > Seconds(0);
      });
}

namespace {

/// Raises `added` so that the step lasts as long as its busiest link is busy with operations of the stage or, where
/// messages between stages come on top of these, with operations of all stages and messages between them. Calls alone
/// never need that, but traffic and the calls that it meets may, and messages that take longer than the step.
void bound_by_links(const StepMachine& machine, ContentionSum& sum, ContendedData& traffic,
                    const TimedStage& step, Breakdown& added) {
  const Seconds now = step.step + added.total(),
                busiest = sum.busiest_link(traffic, step.stage, now - step.messages);
  added[TimeClass::data_comm] += std::max(Seconds(0), busiest - now);
  if (step.messages <= Seconds(0) || (busiest <= Seconds(0) && step.messages <= now)) return;
  const SentInStep sent = sent_in_step(machine);
  double with_messages = 0;
  for (std::size_t link = 0; link < sent.busy.size(); ++link)
    with_messages = std::max(with_messages, sent.busy[link] + sent.messages[link]);
  added[TimeClass::bubble] += std::max(Seconds(0), Seconds(with_messages) - std::max(now, busiest));
}

}  // namespace

Contention contention_of(const StepMachine& machine, const TimedStage& step) {
  return with_stage(machine, step.stage, [&](ContentionSum& sum, ContendedData& traffic) -> Contention {
    sum.add_data(traffic, step);
    if (machine.collectives.has_faults()) return sum.of(step, 0);
    const Seconds messages = sum.messages_beside_once(traffic, step), both = sum.messages_both_ways(step);
    const Breakdown calls = sum.calls_beside_messages(step);
    const Seconds open = kOnceOpen * messages + kBothWaysOpen * both + kMessagesOpen * calls.total();
    Contention contention = sum.of(
        step, sum.messages_beside(traffic, step) + sum.uneven_stages(traffic, step) + open / step.step);
    contention.added += calls;
    contention.added[TimeClass::bubble] += messages + both;
    bound_by_links(machine, sum, traffic, step, contention.added);
    return contention;
  });
}

Operations operations_of(const StepMachine& machine, std::size_t stage) {
  return with_stage(machine, stage, [&](ContentionSum& sum, ContendedData& traffic) {
    return sum.operations(traffic, stage);
  });
}

SiblingTurns turns_of_siblings(const StepMachine& machine, const TimedStage& step,
                               const std::function<MetTraffic()>& beside) {
  return with_stage(machine, step.stage, [&](ContentionSum& sum, const ContendedData& traffic) {
    const SiblingTimes passes = sum.in_passes(traffic);
    if (!worth_turns(passes, traffic.once.siblings, step)) return SiblingTurns();
    EnumArray<ParallelGroup, double> by_others;
    for (const ParallelGroup group : enum_values<ParallelGroup>()) {
      const bool shared = passes[group].others + traffic.once.siblings[group].others > Seconds(0);
      by_others[group] = shared ? sent_by_others(machine.in, step.stage, group).mean : 1;
    }
    return sibling_turns(passes, traffic.once.siblings, step, by_others, beside());
  });
}

}  // namespace shardscape::step
