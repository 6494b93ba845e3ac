// What `simulate` makes of a training step beside its report: the chart of the schedule, execution traces.
#pragma once

#include <cstdint>
#include <string>

#include "engine/prediction.h"
#include "engine/spec/scenario.h"
#include "engine/timeline/stage_steps.h"
#include "results_schema/output_file.h"

namespace shardscape::cli {

/// The chart, `width` characters wide; 0: as wide as the terminal, or 120 where there is none.
std::string schedule_chart(const timeline::PricedStep& program, std::int32_t width);

/// Writes the traces of all ranks of a timed training step: of what was executed in flattened mode, of the
/// stages' programs otherwise. Returns the number of nodes.
std::uint64_t write_chakra(const Details& details, const Setting& setting, results::OutputFolder& folder);

}  // namespace shardscape::cli
