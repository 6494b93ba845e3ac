// A training step as it was priced: the schedule and the times that it was run with. Charts and timelines are made from
// it after the point has been evaluated.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/execution/program.h"
#include "engine/schedule/pipeline.h"
#include "engine/timeline/chrome_trace.h"

namespace shardscape::timeline {

/// The time that a stage works after its pipeline ends, by kind of work, in seconds.
struct StageTailSpan {
  double data_comm = 0;
  double optimizer = 0;
  double deferred = 0;  ///< weight gradients of the head, which come first

  [[nodiscard]] double total() const { return data_comm + optimizer + deferred; }
};

struct TimedStep {
  std::string title;
  schedule::PipelineShape shape;
  std::vector<schedule::StageTime> times;  ///< in the order that schedule::run_in_order() takes
  schedule::Transfer transfer;
  std::vector<StageTailSpan> tails;  ///< per stage
  double step_fixed = 0;             ///< seconds of the host before everything else
};

/// The programs of its ranks as a timeline of the step reads them.
struct StagePrograms {
  const execution::Programs& programs;
  std::vector<std::int32_t> ranks;  ///< by stage: the one that is drawn
  /// By stage, lane and call: seconds that a call was priced with.
  std::vector<std::vector<std::vector<double>>> call_seconds;
};

/// Draws the pipeline as process 0 of a Chrome trace: one track per pipeline stage, one slice per microbatch and
/// direction. `stage_end` and `tails`: one entry per stage. Times are counted from the beginning of the pipeline.
void draw_pipeline(ChromeTrace& trace, std::span<const schedule::PipelineSpan> spans,
                   std::span<const double> stage_end, std::span<const StageTailSpan> tails);

}  // namespace shardscape::timeline
