// Times a training step: passes of stages and chunks (only those that faults touch, where the healthy step is known),
// data-parallel traffic, the pipeline, the tails, contention, and the breakdown along the stage that ends last.
#include "engine/step/training/price_training.h"

#include <algorithm>
#include <optional>

#include "engine/base/check.h"
#include "engine/model/block_kinds.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/training/data_beside.h"
#include "engine/step/training/data_costs.h"
#include "engine/step/training/known_step.h"
#include "engine/step/training/stage_passes.h"
#include "engine/step/training/stage_tails.h"
#include "engine/step/training/step_contention.h"

namespace shardscape::step {

namespace {

using network::CollectiveOp;
using network::PlanLayout;
using network::RankGroups;

/// Seconds of one message over each boundary between stages, as if no other boundary were sending: a stage sends when
/// it has worked, so that messages of different boundaries are under way at different times.
void price_boundaries(const TrainingStep& in, const RankGroups& groups,
                      const network::CollectivePrices& collectives, std::vector<double>& seconds) {
  const Boundary boundary = in.boundary();
  const bool closed = in.pipeline.wraps();  // the next chunk begins on the first stage again
  collectives.boundary_times(boundary.message, groups[ParallelGroup::pipeline], closed, seconds);
  // In a chain the last boundary (from the last stage to the first) is not used. It takes the time of
  // another, so that a chain whose boundaries cost the same is seen to be so below.
  if (!closed) seconds.back() = seconds.front();
  if (std::ranges::adjacent_find(seconds, std::ranges::not_equal_to()) == seconds.end()) seconds.resize(1);
  if (boundary.gathered <= Bytes(0)) return;
  const Seconds gather =
      collectives.time({CollectiveOp::all_gather, boundary.gathered, groups[ParallelGroup::tensor]});
  for (double& of_boundary : seconds) of_boundary += gather.value();
}

schedule::Transfer priced_transfer(const TrainingStep& in, const RankGroups& groups,
                                   const network::CollectivePrices& collectives) {
  schedule::Transfer transfer(0, !in.setting.system.stack.communication.pipeline_async);
  if (in.plan.pipeline == 1) return transfer;
  price_boundaries(in, groups, collectives.with_memory(memory_share(in)), transfer.seconds);
  return transfer;
}

/// Fills the times that the pipeline is run with.
void fill_schedule_times(const TrainingStep& in, TrainingScratch& scratch) {
  const auto each = static_cast<std::size_t>(in.pipeline.virtual_stages);
  std::vector<schedule::StageTime>& times = scratch.times;
  times.resize(scratch.forward.size() * each);
  const auto set = [&](std::size_t i, const PassTime& forward, const PassTime& backward, Seconds weight,
                       Seconds hidden) {
    times[i] = {forward.total().value(), backward.total().value(), weight.value(), hidden.value()};
  };
  for (std::size_t s = 0; s < scratch.forward.size(); ++s) {
    for (std::size_t i = s * each; i < (s + 1) * each; ++i) {
      if (scratch.is_twin(s)) {
        times[i] = times[i - each];
      } else if (each > 1) {
        const ChunkPasses& chunk = scratch.chunks[i];
        set(i, chunk.forward, chunk.backward, chunk.weight, chunk.hidden);
      } else {
        set(i, scratch.forward[s], scratch.backward[s], scratch.weight[s], scratch.hidden[s]);
      }
    }
  }
}

/// Seconds that all pairs of a stage hide in one step.
Seconds hidden_in_step(const TrainingStep& in, const TrainingScratch& scratch, std::size_t stage) {
  const std::int32_t chunks = in.pipeline.virtual_stages;
  double sum = 0;
  for (std::int32_t c = 0; c < chunks; ++c) {
    const auto entry = static_cast<std::size_t>(static_cast<std::int32_t>(stage) * chunks + c);
    sum += schedule::pairs(in.pipeline, static_cast<std::int32_t>(stage), c) * scratch.times[entry].hidden;
  }
  return Seconds(sum);
}

/// Finds when each stage ends, with the real transfers and with free ones. `shared`: what plans of the same layers
/// share, or null.
void run_pipeline(const TrainingStep& in, const RankGroups& groups,
                  const network::CollectivePrices& collectives, LayerTimes* shared,
                  TrainingScratch& scratch) {
  const PartsToPrice& parts = *scratch.parts;
  if (scratch.every_tail) copy_to_twins(in, scratch);
  fill_schedule_times(in, scratch);
  if (!parts.boundaries()) scratch.transfer = parts.known()->transfer;
  if (!parts.pipeline()) {
    scratch.end = parts.known()->end;
    scratch.chunk_end = parts.known()->chunk_end;
    scratch.end_without_transfers = parts.known()->end_without_transfers;
    return;
  }
  if (parts.boundaries()) {
    std::optional<schedule::Transfer> own;
    std::optional<schedule::Transfer>& known =
        shared != nullptr ? shared->transfers[in.pipeline.wraps()] : own;
    if (!known) known = priced_transfer(in, groups, collectives);
    scratch.transfer = *known;
  }
  if (network::LinkRecorder* const recorder = collectives.recorder())
    scratch.known->boundaries = recorder->take_part();
  if (scratch.reference) {
    std::vector<schedule::PipelineSpan> spans;
    scratch.end = schedule::run_in_order(in.pipeline, scratch.times, scratch.transfer, &spans);
    scratch.chunk_end = schedule::chunk_ends(in.pipeline, spans, scratch.transfer);
    scratch.end_without_transfers =
        schedule::run_in_order(in.pipeline, scratch.times, {0, scratch.transfer.blocking});
    return;
  }
  const schedule::PipelineEnds fast = scratch.pipelines.run(in.pipeline, scratch.times, scratch.transfer);
  scratch.end.assign(fast.stages.begin(), fast.stages.end());
  scratch.chunk_end.assign(fast.chunks.begin(), fast.chunks.end());
  scratch.end_without_transfers.assign(fast.free.begin(), fast.free.end());
}

/// Model FLOPs of a whole step over all GPUs.
Flops useful_flops(const Setting& setting) {
  const WorkloadSpec& workload = setting.workload;
  return static_cast<double>(workload.global_batch) *
         model::model_flops_per_sequence(setting.model, workload.sequence_length);
}

void fill_rates(const TrainingStep& in, Flops useful, Prediction& out) {
  const WorkloadSpec& workload = in.setting.workload;
  const auto gpus = static_cast<double>(in.plan.gpus());
  const auto batch = static_cast<double>(workload.global_batch);
  out.tokens_per_s_per_gpu =
      batch * static_cast<double>(workload.sequence_length) / out.step_time.value() / gpus;
  out.mfu =
      useful / out.step_time / (gpus * in.setting.system.device.tensor_peak(workload.policy().products));
}

/// The share of what faults add to a step that is open: ranks beyond a sick link are late, and no closed form says how
/// far that hides behind the work of the others. With it, plans are marked to whose step the fault adds a tenth
/// (kDomainBand / 0.3); of 1,100 executed plans with a sick link, those below are 3.4 % off at the 95th percentile.
constexpr double kSickOpen = 0.3;

/// The passes of a stage over all microbatches.
PassTime all_passes(const TrainingStep& in, const TrainingScratch& scratch, std::size_t stage) {
  const double m = in.pipeline.per_chunk();
  const std::size_t twin = scratch.twin[stage];
  PassTime busy = m * scratch.forward[twin];
  busy += m * scratch.backward[twin];
  const Seconds hidden = hidden_in_step(in, scratch, stage);
  const bool exchanging = in.setting.system.stack.communication.expert_overlap > 0;
  const Seconds exchanges = exchanging ? std::min(hidden, busy[TimeClass::expert_comm]) : Seconds(0);
  busy[TimeClass::expert_comm] -= exchanges;
  busy[TimeClass::host] -= hidden - exchanges;  // for pairs, the host launches without a stop
  return busy;
}

/// What a stage waits for the others in a step without transfers.
Seconds waits(const TrainingScratch& scratch, std::size_t stage, const PassTime& busy) {
  return std::max(Seconds(0), Seconds(scratch.end_without_transfers[stage]) - busy.total());
}

/// Times the healthy machine for what faults leave as it is: the contention and its mark.
void time_healthy(const TrainingStep& in, const network::CollectivePrices& collectives,
                  TrainingScratch& scratch, Prediction& out) {
  TrainingStep healthy = in;
  healthy.sick = {};
  time_training(healthy, collectives.without_faults(), scratch, out);
}

/// What the parts of a step are priced on. `shared` and `data`: what plans share, or null.
struct Machine {
  const PlanLayout& layout;
  const RankGroups& groups;
  const network::CollectivePrices& collectives;
  LayerTimes* shared;
  StageDataCosts* data;
};

/// Times all stages, with the pipeline and the tails. `layers`: known times of the layers.
LastStage time_stages(const TrainingStep& in, const Machine& machine, LayerTimes& layers,
                      TrainingScratch& scratch) {
  const auto& [layout, groups, collectives, shared, data] = machine;
  const bool records = collectives.recorder() != nullptr;
  fill_stage_times(in, layout, groups, collectives, layers, scratch);
  fill_chunk_times(in, layout, groups, collectives, layers, scratch);
  if (records) scratch.known->layers = scratch;
  add_data_parallel(in, layout, groups, collectives, data, scratch);
  if (records) scratch.known->passes = scratch;
  run_pipeline(in, groups, collectives, shared, scratch);
  if (records) keep_pipeline(scratch);
  return add_tails(in, layout, groups, collectives, data, scratch);
}

/// Finds out how siblings take turns in a step that was timed with all of them sending at once, and times it again so.
LastStage take_turns(const TrainingStep& in, const Machine& machine, LastStage last,
                     TrainingScratch& scratch) {
  scratch.spared_in_turn = {};
  if (in.plan.pipeline == 1 || in.turns == nullptr) return last;
  // Links are recorded of a step that has been timed before.
  SHARDSCAPE_CHECK(machine.collectives.recorder() == nullptr, last.stage);
  const PassTime busy = all_passes(in, scratch, last.stage);
  const Seconds step = last.end + once_per_step(in.setting.system.stack);
  const SiblingTurns turns = turns_of_siblings(
      in, timed_stage(in, scratch, last.stage, step, busy, waits(scratch, last.stage, busy)),
      machine.collectives, machine.shared, machine.data);
  if (!turns.any) return last;
  scratch.turns = turns;
  const auto takes_turns = [&](ParallelGroup group) { return turns.beside[group] > 0; };
  LastStage now = last;
  if (std::ranges::any_of(enum_values<ParallelGroup>(), takes_turns)) {
    LayerTimes own;  // with their shares, so for this plan only
    const bool calls = std::ranges::any_of(enum_values<ParallelGroup>(), [&](ParallelGroup group) {
      return takes_turns(group) && !is_of_data(group);
    });
    now = time_stages(in, {machine.layout, machine.groups, machine.collectives, machine.shared, nullptr},
                      calls || machine.shared == nullptr ? own : *machine.shared, scratch);
  }
  const StageTail& tail = scratch.tails[now.stage];
  scratch.spared_in_turn = last.end - now.end + std::min(turns.once, tail.data_comm - tail.lost);
  return now;
}

}  // namespace

void fill_training_rates(const TrainingStep& in, Prediction& out) {
  fill_rates(in, useful_flops(in.setting), out);
}

std::int32_t time_training(const TrainingStep& in, const network::CollectivePrices& collectives,
                           TrainingScratch& scratch, Prediction& out) {
  // The healthy machine is timed before any faults. If this is not the first time, `out` already has its time.
  const bool first = out.step_time <= Seconds(0);
  if (first && (collectives.has_faults() || !in.sick.empty())) time_healthy(in, collectives, scratch, out);
  const Seconds before = out.step_time;
  const PlanLayout layout(in.plan);
  const bool plain_machine = in.sick.empty() && !collectives.has_faults(), at_once = plain_machine && first;
  if (at_once) scratch.turns = {};
  const KnownStep* const step = begin_step(in, layout, collectives, scratch, at_once);
  // Layers' times can't be shared where sick links or devices tell stages apart, where siblings take turns, where links
  // are recorded, and on the plain path.
  const bool plain =
      plain_machine && !scratch.turns.any && collectives.recorder() == nullptr && !scratch.reference;
  LayerTimes* const shared = plain ? &scratch.layer_times.times_for(in) : nullptr;
  LayerTimes& layers = plain ? *shared : scratch.own_times;
  if (!plain) layers.forget();
  if (step == nullptr && !layers.groups) layers.groups = layout.groups();
  const RankGroups& groups = step != nullptr ? step->groups : *layers.groups;
  StageDataCosts* const data = plain ? &scratch.data_costs->costs_for(in) : nullptr;
  const Machine machine{layout, groups, collectives, shared, data};
  LastStage last = time_stages(in, machine, layers, scratch);
  if (at_once) last = take_turns(in, machine, last, scratch);
  const Seconds fixed = once_per_step(in.setting.system.stack);
  const std::size_t critical = last.stage;
  StageTail& tail = scratch.tails[critical];
  const Seconds spared_once = std::min(scratch.turns.once, tail.data_comm - tail.lost);
  tail.data_comm -= spared_once;
  out.step_time = last.end + fixed - spared_once;

  const PassTime busy = all_passes(in, scratch, critical);
  Breakdown& b = out.breakdown;
  const Seconds waiting = waits(scratch, critical, busy);
  // With one stage, all devices go at the pace of the sick one. With several stages, or sick links, contention stays
  // that of the healthy machine, so that no fault makes a step shorter.
  Breakdown& contended = scratch.contention.added = scratch.contention.healthy;
  const bool slower_machine = !in.sick.empty() && !collectives.has_faults() && in.plan.pipeline == 1;
  if (at_once || slower_machine) {
    const TimedStage stage = timed_stage(in, scratch, critical, out.step_time, busy, waiting);
    const Contention contention = slower_machine ? contention_on(in.sick.front(), in, stage, collectives)
                                                 : contention_of(in, stage, collectives, shared, data);
    contended = contention.added;
    if (plain_machine) {
      out.contended_share = contention.marked_share + open_in_turns(in, scratch, out.step_time);
      scratch.contention.healthy = contended;
    }
  }
  b = busy;
  b += scratch.tails[critical].deferred;
  b[TimeClass::data_comm] += scratch.tails[critical].data_comm;
  b[TimeClass::pipeline_comm] =
      Seconds(std::max(0.0, scratch.end[critical] - scratch.end_without_transfers[critical]));
  b[TimeClass::bubble] = waiting + wait_for_mirror(in, scratch, critical);
  b[TimeClass::optimizer] = scratch.tails[critical].optimizer;
  b[TimeClass::host] += fixed;
  add_contention(contended, scratch.spared_in_turn, slower_machine ? before : Seconds(0), out);
  if (!plain_machine) out.contended_share += kSickOpen * std::max(0.0, 1 - before / out.step_time);

  if (!scratch.useful) scratch.useful = useful_flops(in.setting);
  fill_rates(in, *scratch.useful, out);
  return static_cast<std::int32_t>(critical);
}

}  // namespace shardscape::step
