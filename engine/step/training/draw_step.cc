#include "engine/step/training/draw_step.h"

#include "engine/execution/program_builder.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/training/emit_training.h"
#include "engine/step/training/step_machine.h"
#include "engine/timeline/step_timeline.h"

namespace shardscape::step {

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
  execution::ProgramBuilder builder(run.network, in.setting.system.stack.communication, collectives,
                                    run.placement);
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
