// The pipeline of a training step in a Chrome trace: one track per pipeline stage, one slice per microbatch and
// direction, as process 0.
#pragma once

#include <span>

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

/// `stage_end` and `tails`: one entry per stage. Times are counted from the beginning of the pipeline.
void draw_pipeline(ChromeTrace& trace, std::span<const schedule::PipelineSpan> spans,
                   std::span<const double> stage_end, std::span<const StageTailSpan> tails);

}  // namespace shardscape::timeline
