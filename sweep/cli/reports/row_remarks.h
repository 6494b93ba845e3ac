// What is to be known of the first rows of a result file beside what their columns say.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sweep/cli/reports/top_rows.h"
#include "sweep/cli/reports/top_table.h"

namespace shardscape::cli {

struct RowRemarks {
  std::vector<std::string> lines;
  std::vector<FurtherColumn> columns;  ///< for scripts
};
/// Where less of the model's FLOPs are left with half of the attention, as a causal mask leaves it, reports tell what
/// MFU is by them: with long sequences it is else above what the device can do.
inline constexpr double kMostlyCausal = 0.9;

/// Of groups of rows in their order: which are within the expected error of the first, where they are ranked by what
/// that is the error of, and which fill a GPU's memory (tight_memory()). `only`: the shown columns; empty: those of a
/// table, which has all that the lines speak of.
RowRemarks remarks_on_rows(const results::ResultReader& reader, const TopQuestion& question,
                           const ChosenRows& chosen, const RowGroups& groups,
                           std::span<const std::string> only = {});

}  // namespace shardscape::cli
