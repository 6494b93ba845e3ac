// Outputs of `simulate` for a training step beside its report: the chart of the schedule, and execution traces.
#pragma once

#include <cstdint>
#include <string>

#include "engine/spec/scenario.h"
#include "engine/timeline/program_export.h"
#include "engine/timeline/timed_step.h"
#include "results_schema/disk/output_file.h"

namespace shardscape::cli {

/// The chart, with `width` characters; 0: as wide as the terminal, or 120 where there is none.
std::string schedule_chart(const timeline::TimedStep& step, std::int32_t width);

/// Writes the traces of all ranks of a training step. Returns the number of nodes.
std::uint64_t write_chakra(const execution::Programs& programs, const Setting& setting,
                           results::OutputFolder& folder);

}  // namespace shardscape::cli
