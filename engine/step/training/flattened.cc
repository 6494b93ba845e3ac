#include "engine/step/training/flattened.h"

#include <algorithm>

#include "engine/execution/program_counts.h"
#include "engine/network/prices/least_time.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/training/emit_training.h"
#include "engine/step/training/price_training.h"
#include "engine/step/training/step_machine.h"
#include "engine/timeline/program_timeline.h"
#include "engine/timeline/step_timeline.h"

namespace shardscape::step {

namespace {

/// Notes how long calls take at least, for those plans whose floors count calls (engine/plan_floor.h).
void note_least_times(const TrainingStep& in, const network::CollectivePrices& collectives,
                      const network::Fabric& fabric, execution::ProgramBuilder& builder) {
  const bool unlike = in.plan.expert > 1 && loads_differ(in.setting.model, in.setting.workload);
  if (unlike || in.pipeline.overlaps || in.pipeline.both_ways() || collectives.has_faults()) return;
  const auto stages = network::PlanLayout(in.plan).stages();
  builder.note_least_times(
      builder.of_calls([&](const network::RankGroup& group, const execution::CallKind& kind) {
        return network::least_of_row(collectives, fabric, {kind.op, Bytes(kind.bytes), group}, stages);
      }));
}

}  // namespace

const execution::ExecutionResult* FlattenedRun::execute(const execution::Programs& all) {
  const execution::ExecutionResult& result = executor.run(all, network.bytes_per_second(), nullptr, fold);
  if (result.gave_up) return &result;
  if (!result.deadlock.empty()) {
    deadlock = result.deadlock.front();
    return nullptr;
  }
  events += result.events;
  messages += result.messages;
  operators += result.operators;
  executed_ranks = result.executed_ranks;
  return &result;
}

std::int32_t execute_training(const TrainingStep& in, const network::CollectivePrices& collectives,
                              FlattenedRun& run, Prediction& out) {
  execution::ProgramBuilder builder = run.builder(in.setting, collectives);
  emit_training(in, builder);
  if (run.executor.is_watched()) note_least_times(in, collectives, run.network.fabric(), builder);
  if (collectives.unreachable() || builder.unreachable()) return 0;
  const auto kept = std::make_shared<const execution::Programs>(builder.finish());
  const execution::Programs& programs = *kept;
  const bool bounded =
      run.most_planned < std::numeric_limits<std::int64_t>::max();  // else they are not counted
  if (bounded && execution::count(programs).events() > run.most_planned) {
    out.step_time = Seconds(std::numeric_limits<double>::infinity());
    return 0;
  }
  const execution::ExecutionResult* const executed = run.execute(programs);
  if (executed == nullptr) return 0;
  const execution::ExecutionResult& result = *executed;
  if (result.gave_up) {
    out.step_time = Seconds(std::numeric_limits<double>::infinity());
    return 0;
  }
  const auto critical = static_cast<std::size_t>(std::ranges::max_element(result.end) - result.end.begin());
  const Seconds fixed = once_per_step(in.setting);
  out.step_time = Seconds(result.end[critical]) + fixed;
  out.contention = Seconds(0);  // it is part of what was executed
  out.contended_share = 0;
  for (const TimeClass c : enum_values<TimeClass>()) out.breakdown[c] = Seconds(result.accounts[critical][c]);
  out.breakdown[TimeClass::host] += fixed;
  fill_training_rates(in, out);
  if (run.want_programs) run.programs = kept;
  if (run.want_timeline) {
    // Executed a second time for the timeline: which ranks it draws depends on which one ends last.
    timeline::ProgramTimeline timeline(
        programs, {in.setting.model.name, static_cast<std::int32_t>(critical), fixed.value()});
    run.executor.give_up_after(std::numeric_limits<std::int64_t>::max());
    run.executor.run(programs, run.network.bytes_per_second(), &timeline);
    run.timeline = timeline.json();
  }
  const network::PlanLayout layout(in.plan);
  return static_cast<std::int32_t>(critical) / layout.stride(PlanAxis::pipeline) % in.plan.pipeline;
}

timeline::TimedStep timed_step(const TrainingStep& in, const StepTimes& times) {
  timeline::TimedStep step{in.setting.model.name,   in.pipeline, times.times,
                           times.pipeline.transfer, {},          once_per_step(in.setting).value()};
  for (std::size_t s = 0; s < times.tails.size(); ++s) {
    const StageTail& tail = times.tails[s];
    step.tails.push_back({tail.data_comm.value(), tail.optimizer.value(), times.deferred_on(in, s).value()});
  }
  return step;
}

std::shared_ptr<const execution::Programs> emit_step(const TrainingStep& in,
                                                     const network::CollectivePrices& collectives,
                                                     const FlattenedRun& run, const timeline::TimedStep& step,
                                                     std::string* drawn) {
  execution::ProgramBuilder builder = run.builder(in.setting, collectives);
  emit_training(in, builder);
  if (builder.unreachable()) return nullptr;
  std::vector<std::int32_t> ranks;
  std::vector<std::vector<std::vector<double>>> call_seconds;
  for (std::int32_t stage = 0; stage < in.plan.pipeline && drawn != nullptr; ++stage) {
    ranks.push_back(stage * network::PlanLayout(in.plan).stride(PlanAxis::pipeline));
    const network::Slice slice = slice_of(static_cast<std::size_t>(stage), in, collectives);
    call_seconds.push_back(
        builder.of_calls([&](const network::RankGroup& group, const execution::CallKind& kind) {
          return collectives.time({kind.op, Bytes(kind.bytes), group, 1, slice}).value();
        }));
  }
  auto programs = std::make_shared<const execution::Programs>(builder.finish());
  if (drawn != nullptr) *drawn = timeline::step_timeline_json(step, {*programs, ranks, call_seconds});
  return programs;
}

}  // namespace shardscape::step
