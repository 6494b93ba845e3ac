// The production evaluator of pipeline schedules: the times of run_in_order(), fast.
//
// gpipe has a closed form (gpipe.cc). 1f1b, zero_bubble and interleaved run as a wave of steps that stops where it
// repeats itself (pipeline_wave.h). What runs in pairs, and any other schedule, is walked operation by operation
// (ordered_run.h).
#pragma once

#include <span>
#include <vector>

#include "engine/schedule/ordered_run.h"
#include "engine/schedule/pipeline.h"
#include "engine/schedule/pipeline_wave.h"

namespace shardscape::schedule {

class PipelineTimer {
 public:
  /// The results of run_in_order() and chunk_ends(), within 1e-9 relative, valid until the next call. Allocates nothing
  /// in steady state.
  PipelineEnds run(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer);

 private:
  PipelineWave wave_;
  OrderedRun orders_;
  std::vector<double> stage_end_, chunk_end_, free_end_;
  Transfer no_transfer_;
};

}  // namespace shardscape::schedule
