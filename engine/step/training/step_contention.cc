// Brings what contention.h finds out about one stage to the whole step.
#include "engine/step/training/step_contention.h"

#include <algorithm>

namespace shardscape::step {

namespace {

/// The shares that may be wrong of what siblings that take turns still cost each other, and of what turns spare in
/// data-parallel traffic beside passes, as execution may bring more of it together than the schedule does. Of 3,480
/// random plans that contend on the links of a torus, 62 are off by more than 5 %; with these shares 311 are marked, 45
/// of those 62 among them.
constexpr double kTurnsOpen = 0.2, kBesideOpen = 0.08;

/// The share of what turns spare that may be wrong where the passes of neighbouring stages begin together, as each
/// waits for the one before and all do the same, so that their calls meet. Chosen with those above.
constexpr double kInStepOpen = 0.04;

}  // namespace

double open_in_turns(const TrainingStep& in, const StepTimes& times, Seconds step) {
  const bool in_step = row_of(in.pipeline.kind).in_step;
  const Seconds spared = in_step ? std::max(Seconds(0), times.spared_in_turn) : Seconds(0);
  return (kTurnsOpen * times.turns.left + kBesideOpen * times.turns.beside_passes + kInStepOpen * spared) /
         step;
}

double open_in_messages(const TrainingStep& in, const StepTimes& times, std::size_t stage, Seconds step) {
  if (in.plan.pipeline == 1 || times.pipeline.transfer.blocking) return 0;
  double shortest = times.times.front().forward;
  for (const schedule::StageTime& time : times.times)
    shortest = std::min({shortest, time.forward, time.backward - (in.cuts() ? time.weight : 0)});
  if (times.pipeline.transfer.longest() <= shortest) return 0;
  const PipelineTimes& ends = times.pipeline;
  return std::max(0.0, ends.end[stage] - ends.end_without_transfers[stage]) / step.value();
}

TimedStage timed_stage(const TrainingStep& in, const StepTimes& times, std::size_t stage, Seconds step,
                       const PassTime& busy, Seconds waiting) {
  const double m = in.pipeline.per_chunk();
  const StagePasses& passes = times.passes(stage);
  const PassTime &forward = passes.forward, &backward = passes.backward;
  return TimedStage{stage,
                    step,
                    busy.total() - busy[TimeClass::data_comm],
                    m * passes.calling(Pass::forward, in.cuts()),
                    m * passes.calling(Pass::backward, in.cuts()),
                    m * (forward[TimeClass::host] - passes.lead),
                    m * (backward[TimeClass::host] - passes.lead),
                    busy.total() > Seconds(0) ? waiting / busy.total() : 0,
                    times.tails[stage].data_comm - times.tails[stage].lost,
                    times.tails[stage].hidden.all(),
                    Seconds(2.0 * in.pipeline.forwards() * times.pipeline.transfer.longest()),
                    busy,
                    times.pipeline.end,
                    times.chunks_of(times.twin[stage])};
}

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

Contention contention_on(const SickStage& device, const StepMachine& machine, const TimedStage& stage) {
  const TrainingStep& in = machine.in;
  const TrainingStep like{device.setting, in.plan,     device.costs, in.layers, in.chunks,
                          in.parameters,  in.pipeline, {},           in.held};
  const network::CollectivePrices collectives = machine.collectives.with_memory(memory_share(in));
  return contention_of({like, machine.groups, collectives, nullptr, nullptr}, stage);
}

}  // namespace shardscape::step
