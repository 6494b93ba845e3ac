// Outputs of `simulate` for a training step beside its report: the chart of the schedule, and execution traces.
#pragma once

#include <cstdint>
#include <string>

#include "engine/details.h"
#include "engine/spec/scenario.h"
#include "engine/timeline/stage_steps.h"
#include "results_schema/disk/output_file.h"

namespace shardscape::cli {

/// The chart, with `width` characters; 0: as wide as the terminal, or 120 where there is none.
std::string schedule_chart(const timeline::PricedStep& program, std::int32_t width);

/// Writes the traces of all ranks of a timed training step: of the executed programs in flattened mode, otherwise of
/// the stages' programs. Returns the number of nodes.
std::uint64_t write_chakra(const Details& details, const Setting& setting, results::OutputFolder& folder);

}  // namespace shardscape::cli
