// What the report shows beside the table of points: facts about the study, and its fault samples.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results_schema/reading/reader.h"
#include "results_schema/report/report_data.h"

namespace shardscape::cli {

/// Model, cluster, GPUs, stack, workload, ... as (label, text), as far as the resolved study has them.
std::vector<std::pair<std::string, std::string>> study_facts(const results::ResultReader& reader);

/// The best point by the first objective as `top` finds it, with up to `confirm` rows executed, and how it is launched.
report::Answer best_point(const results::ResultReader& reader, std::optional<std::size_t> confirm);

/// Shell words with which `simulate` gets a point of the stored study.
report::Commands simulate_commands(const results::ResultReader& reader);

/// Sums of the fault samples; empty where the file has none.
report::FaultFigures fault_figures(const results::ResultReader& reader);

}  // namespace shardscape::cli
