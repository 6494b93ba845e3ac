// What can be checked of a finished file that does not store all rows. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results_schema/block.h"
#include "results_schema/reader.h"
#include "results_schema/summary.h"

namespace shardscape::results {

/// Whether the point is one of those that the file is made from; their choice is known (PointSelection::knows_points()).
bool is_of_file(const BlockLayout& layout, std::uint64_t point_id);

/// That the counts are of all points, that there are as many rows as these make, that the rows are a choice as the file
/// says, and that they agree with /summary as far as they reach. `of_rows`: the summary that the rows alone make.
std::vector<std::string> stored_rows_problems(const ResultReader& reader, const Summary& of_rows);

}  // namespace shardscape::results
