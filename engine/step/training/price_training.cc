// Times a training step: passes of stages and chunks (only those that faults touch, where the healthy step is known),
// data-parallel traffic, the pipeline, the tails, contention, and the breakdown along the stage that ends last.
#include "engine/step/training/price_training.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "engine/base/check.h"
#include "engine/model/block_kinds.h"
#include "engine/spec/zero.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/training/contention.h"
#include "engine/step/training/met_traffic.h"
#include "engine/step/training/stage_passes.h"
#include "engine/step/training/stage_tails.h"

namespace shardscape::step {

namespace {

using network::CollectiveOp;
using network::PlanLayout;
using network::RankGroups;

/// Seconds of one message over each boundary between stages, as if no other boundary were sending: a stage sends when
/// it has worked, so that messages of different boundaries are under way at different times.
void price_boundaries(const StepMachine& machine, schedule::Transfer& transfer) {
  const TrainingStep& in = machine.in;
  const network::CollectivePrices collectives = machine.collectives.with_memory(memory_share(in));
  const Boundary boundary = in.boundary();
  const bool closed = in.pipeline.wraps();  // the next chunk begins on the first stage again
  std::vector<double>&seconds = transfer.seconds, &back = transfer.back;
  collectives.boundary_times(boundary.message, machine.groups[ParallelGroup::pipeline], closed, seconds,
                             back);
  // In a chain the last boundary (from the last stage to the first) is not used. It takes the time of
  // another, so that a chain whose boundaries cost the same is seen to be so below.
  if (!closed) {
    seconds.back() = seconds.front();
    back.back() = back.front();
  }
  if (back == seconds) back.clear();
  if (back.empty() && std::ranges::adjacent_find(seconds, std::ranges::not_equal_to()) == seconds.end())
    seconds.resize(1);
  if (boundary.gathered <= Bytes(0)) return;
  const Seconds gather =
      collectives.time({CollectiveOp::all_gather, boundary.gathered, machine.groups[ParallelGroup::tensor]});
  for (double& of_boundary : seconds) of_boundary += gather.value();
  for (double& of_boundary : back) of_boundary += gather.value();
}

schedule::Transfer priced_transfer(const StepMachine& machine) {
  const StackProfile& stack = machine.in.setting.system.stack;
  schedule::Transfer transfer(0, !stack.communication.pipeline_async);
  if (machine.in.plan.pipeline > 1) price_boundaries(machine, transfer);
  return transfer;
}

/// Fills the times that the pipeline is run with.
void fill_schedule_times(const TrainingStep& in, StepTimes& step) {
  const auto each = static_cast<std::size_t>(in.pipeline.virtual_stages);
  step.times.resize(step.stages.size() * each);
  std::size_t stage = 0, next = each;  // of entry i, and the first entry of the stage after it
  for (std::size_t i = 0; i < step.times.size(); ++i) {
    if (i == next) {
      ++stage;
      next += each;
    }
    if (step.is_twin(stage)) {
      step.times[i] = step.times[i - each];
      continue;
    }
    const ChunkPasses& passes = step.chunk(i);
    const Seconds back = passes.backward.total();
    step.times[i] = {passes.forward.total().value(), back.value(), passes.weight.value(),
                     passes.hidden[0].value(), passes.hidden[1].value()};
    if (in.pipeline.both_ways()) step.times[i].apart = (passes.cut - (back - passes.weight)).value();
  }
}

/// Seconds that all pairs of a stage hide in one step.
Seconds hidden_in_step(const TrainingStep& in, const StepTimes& step, std::size_t stage) {
  if (!in.pipeline.overlaps && !in.pipeline.both_ways()) return Seconds(0);
  const std::int32_t chunks = in.pipeline.virtual_stages;
  double sum = 0;
  for (std::int32_t c = 0; c < chunks; ++c) {
    const auto entry = static_cast<std::size_t>(static_cast<std::int32_t>(stage) * chunks + c);
    const auto [most, rare] = schedule::partners(in.pipeline, static_cast<std::int32_t>(stage), c);
    sum += most.pairs * step.times[entry].hidden + rare.pairs * step.times[entry].hidden_rarely;
  }
  return Seconds(sum);
}

/// Finds when each stage ends, with the real transfers and with free ones.
void run_pipeline(const StepMachine& machine, TrainingScratch& scratch) {
  const schedule::PipelineShape& shape = machine.in.pipeline;
  StepTimes& step = scratch.step;
  PipelineTimes& pipeline = step.pipeline;
  const PartsToPrice& parts = scratch.parts;
  if (scratch.options.every_tail) copy_to_twins(step);
  fill_schedule_times(machine.in, step);
  if (!parts.pipeline()) {
    pipeline = parts.known()->pipeline;
    return;
  }
  if (!parts.boundaries()) {
    pipeline.transfer = parts.known()->pipeline.transfer;
  } else {
    std::optional<schedule::Transfer> own;
    std::optional<schedule::Transfer>& known =
        machine.shared != nullptr ? machine.shared->transfers[shape.wraps()] : own;
    if (!known) known = priced_transfer(machine);
    pipeline.transfer = *known;
  }
  if (network::LinkRecorder* const recorder = machine.collectives.recorder())
    scratch.known.boundaries = recorder->take_part();
  if (scratch.options.reference) {
    std::vector<schedule::PipelineSpan> spans;
    pipeline.end = schedule::run_in_order(shape, step.times, pipeline.transfer, &spans);
    pipeline.chunk_end = schedule::chunk_ends(shape, spans, pipeline.transfer);
    pipeline.end_without_transfers =
        schedule::run_in_order(shape, step.times, {0, pipeline.transfer.blocking});
    return;
  }
  const schedule::PipelineEnds fast = scratch.memos.pipelines.run(shape, step.times, pipeline.transfer);
  pipeline.end.assign(fast.stages.begin(), fast.stages.end());
  pipeline.chunk_end.assign(fast.chunks.begin(), fast.chunks.end());
  pipeline.end_without_transfers.assign(fast.free.begin(), fast.free.end());
}

/// Model FLOPs of a whole step over all GPUs.
Flops useful_flops(const Setting& setting) {
  const WorkloadSpec& workload = setting.workload;
  return static_cast<double>(workload.global_batch) *
         model::model_flops_per_sequence(setting.model, workload.sequence_length);
}

void fill_rates(const TrainingStep& in, Flops useful, StepPrediction& out) {
  const WorkloadSpec& workload = in.setting.workload;
  const auto gpus = static_cast<double>(in.plan.gpus());
  const auto batch = static_cast<double>(workload.global_batch);
  out.tokens_per_s_per_gpu =
      batch * static_cast<double>(workload.sequence_length) / out.step_time.value() / gpus;
  out.mfu =
      useful / out.step_time / (gpus * in.setting.system.device.tensor_peak(workload.policy().products));
}

/// The share of what faults add to a step that is open, in a step of one stage and of several: where ranks that a sick
/// link makes late meet those of other groups is not said by closed forms, nor that stages which wait for others go on
/// with their traffic. Of 2,258 executed random plans with a sick link, 2.0 % are off by more than 5 %, 30 % are
/// marked, and of the others 0.3 % are off by more than 5 %; of 739 others 2.2, 29 and 0.6 %.
constexpr double kSickOpen = 0.08, kSickOpenInStages = 0.3;

/// The passes of a stage over all microbatches.
PassTime all_passes(const TrainingStep& in, const StepTimes& step, std::size_t stage) {
  const double m = in.pipeline.per_chunk();
  const StagePasses& passes = step.passes(stage);
  PassTime busy = m * passes.forward;
  busy += m * passes.backward;
  const Seconds hidden = hidden_in_step(in, step, stage);
  const bool exchanging = in.setting.system.stack.communication.expert_overlap > 0;
  const Seconds exchanges = exchanging ? std::min(hidden, busy[TimeClass::expert_comm]) : Seconds(0);
  busy[TimeClass::expert_comm] -= exchanges;
  busy[TimeClass::host] -= hidden - exchanges;  // for pairs, the host launches without a stop
  return busy;
}

/// What a stage waits for the others in a step without transfers.
Seconds waits(const StepTimes& step, std::size_t stage, const PassTime& busy) {
  return std::max(Seconds(0), Seconds(step.pipeline.end_without_transfers[stage]) - busy.total());
}

/// The shares that may be wrong of what siblings that take turns still cost each other, and of what turns spare in
/// data-parallel traffic beside passes, as execution may bring more of it together than the schedule does. Of 3,480
/// random plans that contend on the links of a torus, 62 are off by more than 5 %; with these shares 311 are marked, 45
/// of those 62 among them.
constexpr double kTurnsOpen = 0.2, kBesideOpen = 0.08;

/// The share of what turns spare that may be wrong where the passes of neighbouring stages begin together, as each
/// waits for the one before and all do the same, so that their calls meet. Chosen with those above.
constexpr double kInStepOpen = 0.04;

/// The share of a step by which turns of siblings (sibling_turns.h) may be wrong.
double open_in_turns(const TrainingStep& in, const StepTimes& times, Seconds step) {
  const bool in_step = row_of(in.pipeline.kind).in_step;
  const Seconds spared = in_step ? std::max(Seconds(0), times.spared_in_turn) : Seconds(0);
  return (kTurnsOpen * times.turns.left + kBesideOpen * times.turns.beside_passes + kInStepOpen * spared) /
         step;
}

/// By how much the passes of a stage end later because of messages between stages.
Seconds messages_shown(const StepTimes& times, std::size_t stage) {
  return Seconds(std::max(0.0, times.pipeline.end[stage] - times.pipeline.end_without_transfers[stage]));
}

/// The share of a step by which messages between stages may make it longer because they meet: a message leaves its
/// stage before the next one does, unless it takes longer than the pass between them. Then both may take twice as long.
/// (Where messages block their senders, those of gpipe, which all go one way at a time, meet none.)
double open_in_messages(const TrainingStep& in, const StepTimes& times, std::size_t stage, Seconds step) {
  const bool meets = !times.pipeline.transfer.blocking || in.pipeline.kind != ScheduleKind::gpipe;
  if (in.plan.pipeline == 1 || !meets) return 0;
  double shortest = times.times.front().forward;
  for (const schedule::StageTime& time : times.times)
    shortest = std::min({shortest, time.forward, time.backward - (in.cuts() ? time.weight : 0)});
  if (times.pipeline.transfer.longest() <= shortest) return 0;
  return messages_shown(times, stage) / step;
}

/// The times of the stage that ends last, on a healthy machine.
TimedStage timed_stage(const TrainingStep& in, const StepTimes& times, std::size_t stage, Seconds step) {
  const PassTime busy = all_passes(in, times, stage);
  const double m = in.pipeline.per_chunk();
  const StagePasses& passes = times.passes(stage);
  const PassTime &forward = passes.forward, &backward = passes.backward;
  return TimedStage{stage,
                    step,
                    busy.total() - busy[TimeClass::data_comm],
                    m * passes.work(Pass::forward, in.cuts()),
                    m * passes.work(Pass::backward, in.cuts()),
                    m * (forward[TimeClass::host] - passes.lead),
                    m * (backward[TimeClass::host] - passes.lead),
                    busy.total() > Seconds(0) ? waits(times, stage, busy) / busy.total() : 0,
                    times.tails[stage].data_comm - times.tails[stage].lost,
                    times.tails[stage].hidden.all(),
                    Seconds(2.0 * in.pipeline.forwards() * times.pipeline.transfer.longest()),
                    times.pipeline.transfer.seconds,
                    messages_shown(times, stage),
                    busy,
                    times.pipeline.end,
                    times.chunks_of(times.twin[stage])};
}

/// Adds contention to the step, from which siblings that take turns have taken `spared` already. It may be less with a
/// sick device, whose longer attention core hides more of an exchange, but the step is never shorter than `at_least`;
/// what lacks counts as waiting for the host.
void add_contention(Breakdown contended, Seconds spared, Seconds at_least, StepPrediction& out) {
  Seconds added;
  for (const Seconds time : contended) added += time;
  const Seconds less = std::max(Seconds(0), at_least - (out.step_time + added));
  contended[TimeClass::host] += less;
  const Seconds longer =
      added + less;  // less than 0 where groups come apart that were priced as sending together
  out.contention = longer - spared;
  out.step_time += longer;
  Seconds lacking;
  for (const TimeClass c : enum_values<TimeClass>()) {
    const Seconds left = out.breakdown[c] + contended[c];
    lacking += std::min(Seconds(0), left);
    out.breakdown[c] = std::max(Seconds(0), left);
  }
  // A class may have less than contention takes from it, if faults have left it less; the largest class gives the rest.
  if (lacking != Seconds(0)) *std::ranges::max_element(out.breakdown) += lacking;
}

/// The contention on a machine whose devices are all like this sick one.
Contention contention_on(const SickStage& device, const StepMachine& machine, const TimedStage& stage) {
  const TrainingStep& in = machine.in;
  const TrainingStep like{device.setting, in.plan,     device.costs, in.layers, in.chunks,
                          in.parameters,  in.pipeline, {},           in.held};
  const network::CollectivePrices collectives = machine.collectives.with_memory(memory_share(in));
  return contention_of({like, machine.groups, collectives, nullptr, nullptr}, stage);
}

/// Times the healthy machine for what faults leave as it is: the contention and its mark.
void time_healthy(const TrainingStep& in, const network::CollectivePrices& collectives,
                  TrainingScratch& scratch, StepPrediction& out) {
  TrainingStep healthy = in;
  healthy.sick = {};
  time_training(healthy, collectives.without_faults(), scratch, out);
}

/// Prepares the scratch for a step. If links are recorded, the step is priced in full and will be the known one; else
/// the parts are found that have to be priced. Returns the known step, copied into the scratch, that all other parts
/// are taken from, or null. `anew`: all parts have to be priced, whatever is known.
const KnownStep* begin_step(const TrainingStep& in, const network::CollectivePrices& collectives,
                            TrainingScratch& scratch, bool anew) {
  KnownStep& known = scratch.known;
  const KnownStep* use = nullptr;
  if (const network::LinkRecorder* const recorder = collectives.recorder()) {
    known = KnownStep();
    known.plan = in.plan;
    known.groups = PlanLayout(in.plan).groups();
    LayerTimesMemo& layers = scratch.memos.layers;
    known.layers_id = scratch.step.turns.any ? layers.next_id() : layers.times_for(in).id;
    known.links.assign(static_cast<std::size_t>(in.plan.pipeline),
                       {recorder->all(), recorder->all(), recorder->all(), {}});
    known.boundaries = recorder->all();
  } else if (!anew && known.layers_id > 0 && known.plan == in.plan && !scratch.options.reference &&
             !scratch.options.every_tail && !collectives.detours()) {
    use = &known;
    static_cast<StageTimes&>(scratch.step) = known.passes;
  }
  scratch.parts.find(in, collectives, use);
  return use;
}

/// Times all stages, with the pipeline and the tails. `layers`: known times of the layers.
LastStage time_stages(const StepMachine& machine, LayerTimes& layers, TrainingScratch& scratch) {
  const bool records = machine.collectives.recorder() != nullptr;
  fill_passes(machine, layers, scratch);
  if (records) scratch.known.layers = scratch.step;
  add_data_parallel(machine, scratch);
  if (records) scratch.known.passes = scratch.step;
  run_pipeline(machine, scratch);
  if (records) scratch.known.pipeline = scratch.step.pipeline;
  return add_tails(machine, scratch);
}

/// Finds out how siblings take turns in a step that was timed with all of them sending at once, and times it again so.
LastStage take_turns(const StepMachine& machine, LastStage last, TrainingScratch& scratch) {
  const TrainingStep& in = machine.in;
  StepTimes& times = scratch.step;
  times.spared_in_turn = {};
  if (in.plan.pipeline == 1 || in.turns == nullptr) return last;
  // Links are recorded of a step that has been timed before.
  SHARDSCAPE_CHECK(machine.collectives.recorder() == nullptr, last.stage);
  const Seconds step = last.end + once_per_step(in.setting);
  const auto beside = [&] { return met_traffic(machine, times, last.stage, scratch.memos.orders); };
  const SiblingTurns turns =
      turns_of_siblings(machine, timed_stage(in, times, last.stage, step),
                        std::cref(beside));  // a reference takes no memory from the heap
  if (!turns.any) return last;
  times.turns = turns;
  const auto takes_turns = [&](ParallelGroup group) { return turns.beside[group] > 0; };
  LastStage now = last;
  if (std::ranges::any_of(enum_values<ParallelGroup>(), takes_turns)) {
    LayerTimes& own = scratch.memos.layers_in_turn;  // with their shares, so for this plan only
    own.forget();
    const bool calls = std::ranges::any_of(enum_values<ParallelGroup>(), [&](ParallelGroup group) {
      return takes_turns(group) && !is_of_data(group);
    });
    now = time_stages({in, machine.groups, machine.collectives, machine.shared, nullptr},
                      calls || machine.shared == nullptr ? own : *machine.shared, scratch);
  }
  const StageTail& tail = times.tails[now.stage];
  times.spared_in_turn = last.end - now.end + std::min(turns.once, tail.data_comm - tail.lost);
  return now;
}

/// The machine with the calls of a stage that plans share.
StepMachine with_calls(const StepMachine& machine, std::size_t stage, TrainingScratch& scratch) {
  LayerTimes* shared = nullptr;
  if (const KnownStep* const known = scratch.parts.known())
    shared = scratch.parts.passes(stage) ? &times_at(scratch.memos.sick_layers.at(
                                               {known->layers_id, machine.collectives.fault_epoch(), stage}))
                                         : &scratch.memos.layers.times_for(machine.in);
  return {machine.in, machine.groups, machine.collectives, shared, machine.data, machine.sick_data};
}

/// What contention adds to a step: `known`, or more where sick links carry data-parallel traffic. Any
/// stage may become the one that ends last: by what is added to it, less the time by which it ended sooner. What
/// traffic beside its passes adds also counts as far as it makes the stage work longer than the busiest one.
Breakdown contention_of_sick(const StepMachine& machine, const LastStage& last, const Breakdown& known,
                             TrainingScratch& scratch) {
  const TrainingStep& in = machine.in;
  const StepTimes& times = scratch.step;
  const auto busiest = [&] {
    Seconds most_work;
    for (std::size_t s = 0; s < times.stages.size(); ++s)
      most_work = std::max(most_work, all_passes(in, times, s).total());
    return most_work;
  };
  Breakdown most = known;
  const auto keep_longer = [&](const Breakdown& added, Seconds time_left) {
    const Seconds all = added.total(), longer = all - time_left;
    if (longer <= most.total()) return;
    if (all > Seconds(0) && longer > Seconds(0)) {
      most = (longer / all) * added;
    } else {  // groups come apart, so that less than nothing is added
      most[TimeClass::bubble] += longer - most.total();
    }
  };
  for (std::size_t s = 0; s < times.stages.size(); ++s) {
    if (!sick_links_carry_data(machine, s, scratch)) continue;
    TimedStage stage = timed_stage(in, times, s, last.end + once_per_step(in.setting));
    const StepMachine own = with_calls(machine, s, scratch);
    keep_longer(contention_of(own, stage).added, last.end - times.tails[s].end);
    const bool touched = scratch.parts.known() == nullptr || scratch.parts.beside(s);
    if (s == last.stage || !touched || in.pipeline.both_ways() || !sends_beside_passes(in) ||
        !beside_passes_slowed(machine, s))
      continue;
    stage.data_tail = Seconds(std::numeric_limits<double>::infinity());  // nothing that is sent once
    keep_longer(contention_of(own, stage).added, busiest() - all_passes(in, times, s).total());
  }
  return most;
}

/// What is sent in the step on a healthy machine.
SentInStep sent_when_healthy(const StepMachine& machine, TrainingScratch& scratch) {
  TrainingStep in = machine.in;
  in.sick = {};
  const network::CollectivePrices prices = machine.collectives.without_faults();
  if (scratch.options.reference) return sent_in_step({in, machine.groups, prices, nullptr, nullptr});
  return sent_in_step(
      {in, machine.groups, prices, &scratch.memos.layers.times_for(in), &scratch.memos.data.costs_for(in)});
}

/// For how long the busiest of the sick links is busy, or `least` if that is longer, and where messages make detours.
Seconds busiest_of_sick(const StepMachine& machine, Seconds least, TrainingScratch& scratch) {
  if (machine.collectives.slow_links().empty()) return least;
  std::optional<SentInStep> own;
  const bool recorded = scratch.known.layers_id > 0 && scratch.known.plan == machine.in.plan;
  std::optional<SentInStep>& sent = recorded && !scratch.options.reference ? scratch.known.sent : own;
  if (!sent) sent = sent_when_healthy(machine, scratch);
  if (machine.collectives.detours(sent->used)) return least;
  Seconds most = least;
  for (const network::SickLinks::SlowLink& slow : machine.collectives.slow_links()) {
    const auto link = static_cast<std::size_t>(slow.link);
    if (Seconds(slow.times * (sent->busy[link] + sent->messages[link])) > most)
      most = std::max(most, busy_on_slow_link(*sent, machine.in.plan, machine.collectives, slow));
  }
  return most;
}

std::int32_t time_step(const TrainingStep& in, const network::CollectivePrices& collectives,
                       TrainingScratch& scratch, StepPrediction& out) {
  // The healthy machine is timed before any faults. If this is not the first time, `out` already has its time.
  const bool first = out.step_time <= Seconds(0);
  if (first && (collectives.has_faults() || !in.sick.empty())) time_healthy(in, collectives, scratch, out);
  const Seconds before = out.step_time;
  StepTimes& times = scratch.step;
  const bool plain_machine = in.sick.empty() && !collectives.has_faults(), at_once = plain_machine && first;
  if (at_once) times.turns = {};
  const KnownStep* const step = begin_step(in, collectives, scratch, at_once);
  // Layers' times can't be shared where sick links or devices tell stages apart, where siblings take turns, where links
  // are recorded, and on the plain path.
  const bool plain =
      plain_machine && !times.turns.any && collectives.recorder() == nullptr && !scratch.options.reference;
  LayerTimes* const shared = plain ? &scratch.memos.layers.times_for(in) : nullptr;
  LayerTimes& layers = plain ? *shared : scratch.memos.own_layers;
  if (!plain) layers.forget();
  if (step == nullptr && !layers.groups) layers.groups = PlanLayout(in.plan).groups();
  const RankGroups& groups = step != nullptr ? step->groups : *layers.groups;
  StageDataCosts* const data = plain ? &scratch.memos.data.costs_for(in) : nullptr;
  DataCostsMemo* const sick_data = step != nullptr && in.sick.empty() ? &scratch.memos.data : nullptr;
  const StepMachine machine{in, groups, collectives, shared, data, sick_data};
  LastStage last = time_stages(machine, layers, scratch);
  if (at_once) last = take_turns(machine, last, scratch);
  const Seconds fixed = once_per_step(in.setting);
  const std::size_t critical = last.stage;
  StageTail& tail = times.tails[critical];
  const Seconds spared_once = std::min(times.turns.once, tail.data_comm - tail.lost);
  tail.data_comm -= spared_once;
  out.step_time = last.end + fixed - spared_once;

  const PassTime busy = all_passes(in, times, critical);
  Breakdown& b = out.breakdown;
  const Seconds waiting = waits(times, critical, busy);
  // With one stage, all devices go at the pace of the sick one. With several stages contention stays that of the
  // healthy machine, and sick links only add to it, so that no fault makes a step shorter.
  Breakdown& contended = times.contention_now = times.contention;
  const bool slower_machine = !in.sick.empty() && !collectives.has_faults() && in.plan.pipeline == 1;
  if (at_once || slower_machine) {
    const TimedStage stage = timed_stage(in, times, critical, out.step_time);
    const Contention contention =
        slower_machine ? contention_on(in.sick.front(), machine, stage) : contention_of(machine, stage);
    contended = contention.added;
    if (plain_machine) {
      out.contended_share = contention.marked_share + open_in_turns(in, times, out.step_time) +
                            open_in_messages(in, times, critical, out.step_time);
      times.contention = contended;
    }
  }
  if (collectives.has_faults()) {
    contended = contention_of_sick(machine, last, contended, scratch);
    const Seconds now = out.step_time + contended.total();
    contended[TimeClass::bubble] += busiest_of_sick(machine, now, scratch) - now;
  }
  b = busy;
  if (in.last(static_cast<std::int32_t>(critical))) b += times.deferred;
  b[TimeClass::data_comm] += times.tails[critical].data_comm;
  b[TimeClass::pipeline_comm] = messages_shown(times, critical);
  b[TimeClass::bubble] = waiting + wait_for_mirror(in, times, critical);
  b[TimeClass::optimizer] = times.tails[critical].optimizer;
  b[TimeClass::host] += fixed;
  add_contention(contended, times.spared_in_turn, slower_machine ? before : Seconds(0), out);
  if (!plain_machine) {
    const double open = in.plan.pipeline > 1 ? kSickOpenInStages : kSickOpen;
    out.contended_share += open * std::max(0.0, 1 - before / out.step_time);
  }

  std::optional<Flops>& useful = scratch.memos.useful;
  if (!useful) useful = useful_flops(in.setting);
  fill_rates(in, *useful, out);
  return static_cast<std::int32_t>(critical);
}

}  // namespace

void fill_training_rates(const TrainingStep& in, StepPrediction& out) {
  fill_rates(in, useful_flops(in.setting), out);
}

std::int32_t time_training(const TrainingStep& in, const network::CollectivePrices& collectives,
                           TrainingScratch& scratch, StepPrediction& out) {
  const bool first_and_healthy = out.step_time <= Seconds(0) && in.sick.empty() && !told_apart(collectives);
  const bool plain = scratch.options.reference || scratch.options.every_tail || in.turns == nullptr;
  // Only plans that are timed with this ZeRO stage may be timed like others.
  constexpr auto kShared = static_cast<std::int32_t>(ZeroState::optimizer);
  if (!first_and_healthy || plain || timed_zero_stage(in.plan, in.setting.system.stack) != kShared)
    return time_step(in, collectives, scratch, out);
  const auto [known, fresh] =
      scratch.memos.steps.at({layers_key(in), in.plan.schedule, in.plan.virtual_stages});
  StepTimes& times = scratch.step;
  if (fresh) {
    known.critical = time_step(in, collectives, scratch, out);
    known.out = out;
    known.healthy = times;
  } else {
    out = known.out;
    static_cast<HealthyTimes&>(times) = known.healthy;
    times.contention_now = times.contention;
  }
  return known.critical;
}

}  // namespace shardscape::step
