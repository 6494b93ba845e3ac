// A training step as it was priced: the schedule and the times that it was run with. Charts and timelines are made from
// it after the point has been evaluated.
#pragma once

#include <string>
#include <vector>

#include "engine/execution/program.h"
#include "engine/schedule/pipeline.h"
#include "engine/timeline/pipeline_trace.h"

namespace shardscape::timeline {

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

}  // namespace shardscape::timeline
