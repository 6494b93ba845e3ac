#include "engine/schedule/pipeline_timer.h"

#include "engine/base/check.h"
#include "engine/schedule/schedule_rules.h"

namespace shardscape::schedule {

PipelineEnds PipelineTimer::run(const PipelineShape& shape, std::span<const StageTime> times,
                                const Transfer& transfer) {
  const auto stages = static_cast<std::size_t>(shape.stages);
  SHARDSCAPE_CHECK(transfer.seconds.size() == 1 || transfer.seconds.size() == stages, transfer.seconds.size(),
                   shape.stages);
  SHARDSCAPE_CHECK(transfer.back.empty() || transfer.back.size() == transfer.seconds.size(),
                   transfer.back.size(), transfer.seconds.size());
  const ScheduleRules& rules = rules_of(shape);
  const bool lone = shape.stages == 1 && shape.virtual_stages == 1;
  const bool fast = lone || rules.ends != nullptr || rules.waves;
  if (shape.overlaps || !fast) return orders_.run(shape, times, transfer);
  const bool by_chunk = times.size() == stages * static_cast<std::size_t>(shape.virtual_stages);
  SHARDSCAPE_CHECK(times.size() == stages || (by_chunk && row_of(shape.kind).chunks), times.size(),
                   shape.stages);
  if (!lone && rules.waves) return wave_.run(shape, times, transfer);
  const std::size_t chunks =
      shape.virtual_stages > 1 ? times.size() * static_cast<std::size_t>(shape.virtual_stages) : 0;
  stage_end_.assign(times.size(), 0);
  chunk_end_.assign(chunks, 0);
  if (lone) {
    stage_end_[0] = shape.microbatches * (times[0].forward + times[0].backward);
    free_end_ = stage_end_;
  } else {
    no_transfer_.blocking = transfer.blocking;
    rules.ends(shape, times, transfer, stage_end_);
    rules.ends(shape, times, no_transfer_, free_end_);
  }
  return {stage_end_, chunk_end_, free_end_};
}

}  // namespace shardscape::schedule
