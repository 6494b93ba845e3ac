// A training step as a Chrome trace (chrome_trace.h). The pipeline begins after the host's fixed time of the step.
//
// Process 0 has a track per stage with a slice per microbatch and pass (timed_step.h). Process 1 + s shows a device
// of stage s (all ranks of a stage run the same) on four tracks: what its host does once per step, its compute with
// what bounds each operator, its communication with bytes, and what it waits for, each with the class of time that it
// is booked on.
//
// A pass is drawn from its program (execution/program.h), as the rank would run it alone with calls that take as long
// as they are priced, from where the schedule begins it; what the prediction adds to that is a wait at its end, and
// where that is less, as in pairs, the pass is drawn shorter in proportion.
//
// Operators are drawn for as many microbatches, from the first one on, as kMostOperatorSlices allows; the number is in
// otherData.
#pragma once

#include <cstddef>
#include <string>

#include "engine/timeline/timed_step.h"

namespace shardscape::timeline {

constexpr std::size_t kMostOperatorSlices = 60'000;

/// The trace as text. Pure; the same step gives the same text.
std::string step_timeline_json(const TimedStep& step, const StagePrograms& programs);

}  // namespace shardscape::timeline
