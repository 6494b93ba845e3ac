// A training step as a Chrome trace (Trace Event Format, JSON object form; ui.perfetto.dev and
// chrome://tracing open it). Times are microseconds; the pipeline begins after the host's fixed time of the
// step.
//
// Process 0 has a track per stage with a slice per microbatch and pass, as pipeline_trace_json(). Process 1 +
// s shows a device of stage s (all ranks of a stage run the same) on four tracks: what its host does once per
// step, its compute with what bounds each operator, its communication with bytes, and what it waits for.
// Operators are drawn for as many microbatches, from the first one on, as `most_operator_slices` allows; the
// number is in otherData.
#pragma once

#include <cstddef>
#include <string>

#include "engine/timeline/stage_steps.h"

namespace shardscape::timeline {

constexpr std::size_t kMostOperatorSlices = 60'000;

/// The trace as text. Pure; the same program gives the same text.
std::string step_timeline_json(const PricedStep& program,
                               std::size_t most_operator_slices = kMostOperatorSlices);

}  // namespace shardscape::timeline
