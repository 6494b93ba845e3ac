// What the report says beyond the table of points: the study in words, and its fault samples.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "results_schema/reader.h"
#include "results_schema/report/report_data.h"

namespace shardscape::cli {

/// Model, cluster, GPUs, stack, workload, ... as (label, text), as far as the resolved study says.
std::vector<std::pair<std::string, std::string>> study_facts(const results::ResultReader& reader);

/// How `simulate` is told of a point of the stored study, as shell words.
report::Commands simulate_commands(const results::ResultReader& reader);

/// Empty where the file has no fault samples.
report::FaultFigures fault_figures(const results::ResultReader& reader);

}  // namespace shardscape::cli
