// A training step as a Chrome trace: one track per pipeline stage, one slice per microbatch and direction.
//
// The format is the Trace Event Format's JSON object form (complete events "X"), which ui.perfetto.dev and
// chrome://tracing open. Times are microseconds.
#pragma once

#include <span>
#include <string>

#include "engine/schedule/pipeline.h"

namespace shardscape::timeline {

/// The time that a stage works after its pipeline ends, by kind of work, in seconds.
struct StageTailSpan {
  double data_comm = 0;
  double optimizer = 0;
  double deferred = 0;  ///< weight gradients of the head, which come first
};

/// `stage_end` and `tails`: one entry per stage. `begin`: when the pipeline begins, seconds; the times of
/// spans and stages are counted from there, those of the trace from 0. Pure; the same input gives the same
/// text.
std::string pipeline_trace_json(std::string_view title, std::span<const schedule::PipelineSpan> spans,
                                std::span<const double> stage_end, std::span<const StageTailSpan> tails,
                                double begin = 0);

}  // namespace shardscape::timeline
