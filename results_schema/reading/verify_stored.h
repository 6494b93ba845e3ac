// Checks of a finished file that does not store all rows. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"
#include "results_schema/rows/block.h"
#include "results_schema/rows/summary.h"

namespace shardscape::results {

/// Whether the point is one of those that the file is made from. Their choice must be known
/// (PointSelection::knows_points()).
bool is_of_file(const BlockLayout& layout, std::uint64_t point_id);

/// Checks that the counts cover all points, that there are as many rows as follows from them, that the rows are chosen
/// as the file says, and that they agree with /summary as far as they reach. `of_rows`: the summary made from the rows
/// alone.
std::vector<std::string> stored_rows_problems(const ResultReader& reader, const Summary& of_rows);

}  // namespace shardscape::results
