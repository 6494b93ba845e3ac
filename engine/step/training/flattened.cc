#include "engine/step/training/flattened.h"

#include <algorithm>
#include <limits>

#include "engine/execution/program_builder.h"
#include "engine/execution/program_counts.h"
#include "engine/network/prices/least_time.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/training/emit_training.h"
#include "engine/step/training/price_training.h"
#include "engine/timeline/program_timeline.h"

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

std::int32_t execute_training(const TrainingStep& in, const network::CollectivePrices& collectives,
                              FlattenedRun& run, Prediction& out) {
  execution::ProgramBuilder builder(run.network, in.setting.system.stack.communication, collectives,
                                    run.placement);
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
  const execution::ExecutionResult& result =
      run.executor.run(programs, run.network.bytes_per_second(), nullptr, run.fold);
  if (result.gave_up) {
    out.step_time = Seconds(std::numeric_limits<double>::infinity());
    return 0;
  }
  if (!result.deadlock.empty()) {
    run.deadlock = result.deadlock.front();
    return 0;
  }
  run.events = result.events;
  run.messages = result.messages;
  run.operators = result.operators;
  run.executed_ranks = result.executed_ranks;

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

}  // namespace shardscape::step
