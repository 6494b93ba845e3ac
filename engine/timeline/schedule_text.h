// A pipeline schedule as a chart of characters: stages as rows, time across.
//
//   stage 0  F0F1....B0--F2B1--..B2--  idle 25.0 %
//   stage 1  ..F0B0--F1B1--F2B2--....  idle 25.0 %
//
// Every operation fills its columns: its letter, its microbatch (and its chunk, a, b, .. where stages hold
// several) where there is room for them, then dashes. Operations shorter than half a column may not show.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/schedule/pipeline.h"
#include "engine/timeline/timed_step.h"

namespace shardscape::timeline {

/// The data of a chart; spans and stage_end are as run_in_order() gives them; one tail per stage, or none.
struct ScheduleChart {
  schedule::PipelineShape shape;
  schedule::Transfer transfer;
  std::span<const schedule::PipelineSpan> spans;
  std::span<const double> stage_end;
  std::span<const StageTailSpan> tails;
};

/// Narrowest and widest lines that a chart is drawn for.
constexpr std::int32_t kNarrowestChart = 40;
constexpr std::int32_t kWidestChart = 10'000;

/// Lines of at most `width` characters (within the bounds above) that end in '\n': the scale, a row per
/// stage, the legend. Pure; the same input gives the same text.
std::string schedule_text(const ScheduleChart& chart, std::int32_t width);

}  // namespace shardscape::timeline
