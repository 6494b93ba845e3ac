#include "engine/schedule/pipeline_timer.h"

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::schedule {

PipelineEnds PipelineTimer::run(const PipelineShape& shape, std::span<const StageTime> times,
                                const Transfer& transfer) {
  const auto stages = static_cast<std::size_t>(shape.stages);
  SHARDSCAPE_CHECK(transfer.seconds.size() == 1 || transfer.seconds.size() == stages, transfer.seconds.size(),
                   shape.stages);
  if (shape.both_ways() || shape.overlaps) return run_pairs(shape, times, transfer);
  const bool by_chunk = times.size() == stages * static_cast<std::size_t>(shape.virtual_stages);
  const bool waves = shape.kind == ScheduleKind::interleaved;
  SHARDSCAPE_CHECK(times.size() == stages || (by_chunk && waves), times.size(), shape.stages);
  const bool lone = shape.stages == 1 && shape.virtual_stages == 1;
  if (!lone && shape.kind != ScheduleKind::gpipe) return wave_.run(shape, times, transfer);
  const std::size_t chunks =
      shape.virtual_stages > 1 ? times.size() * static_cast<std::size_t>(shape.virtual_stages) : 0;
  stage_end_.assign(times.size(), 0);
  chunk_end_.assign(chunks, 0);
  if (lone) {
    stage_end_[0] = shape.microbatches * (times[0].forward + times[0].backward);
    free_end_ = stage_end_;
  } else {
    no_transfer_.blocking = transfer.blocking;
    run_gpipe(shape, times, transfer, stage_end_);
    run_gpipe(shape, times, no_transfer_, free_end_);
  }
  return {stage_end_, chunk_end_, free_end_};
}

PipelineEnds PipelineTimer::run_pairs(const PipelineShape& shape, std::span<const StageTime> times,
                                      const Transfer& transfer) {
  const bool chunked = shape.wraps();  // chunks end at times of their own
  spans_.clear();
  stage_end_ = walk_.run(shape, times, transfer, chunked ? &spans_ : nullptr);
  chunk_end_ = chunked ? chunk_ends(shape, spans_, transfer) : std::vector<double>();
  no_transfer_.blocking = transfer.blocking;
  free_end_ = shape.stages == 1 ? stage_end_ : walk_.run(shape, times, no_transfer_, nullptr);
  return {stage_end_, chunk_end_, free_end_};
}

void PipelineTimer::run_gpipe(const PipelineShape& shape, std::span<const StageTime> times,
                              const Transfer& transfer, std::vector<double>& ends) {
  const std::size_t stages = times.size();
  ends.resize(stages);
  const double repeats = shape.microbatches - 1;
  const auto busy = [&](std::size_t boundary) { return transfer.blocking ? transfer.over(boundary) : 0; };
  // Arrival of the first microbatch at this stage; longest time per microbatch of the stages so far.
  double arrival = 0, slowest = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const bool sends = s + 1 < stages;
    const double work = times[s].forward + (sends ? busy(s) : 0);
    slowest = std::max(slowest, work);
    ends[s] = arrival + work + repeats * slowest;
    arrival += times[s].forward + (sends ? transfer.over(s) : 0);
  }
  arrival = ends.back();
  slowest = 0;
  for (std::size_t s = stages; s-- > 0;) {
    const bool sends = s > 0;
    const double work = times[s].backward + (sends ? busy(s - 1) : 0);
    slowest = std::max(slowest, work);
    ends[s] = arrival + work + repeats * slowest;
    arrival += times[s].backward + (sends ? transfer.over(s - 1) : 0);
  }
}

}  // namespace shardscape::schedule
