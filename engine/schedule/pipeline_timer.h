// The production evaluator of pipeline schedules: the times of run_in_order(), fast.
//
// gpipe is a flow shop of identical jobs and has a closed form: with forward times f and the sender's share
// of transfers c, stage s ends its m-th forward at  sum(i <= s) f_i + (m - 1) max(i <= s) f_i  (plus
// transfers), and backwards mirror it.
//
// 1f1b, zero_bubble and interleaved run as a wave of steps that stops where it repeats itself
// (pipeline_wave.h). What runs in pairs is walked operation by operation (ordered_run.h).
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
  static void run_gpipe(const PipelineShape& shape, std::span<const StageTime> times,
                        const Transfer& transfer, std::vector<double>& ends);

  PipelineEnds run_pairs(const PipelineShape& shape, std::span<const StageTime> times,
                         const Transfer& transfer);

  PipelineWave wave_;
  OrderedRun walk_;
  std::vector<PipelineSpan> spans_;
  std::vector<double> stage_end_, chunk_end_, free_end_;
  Transfer no_transfer_;
};

}  // namespace shardscape::schedule
