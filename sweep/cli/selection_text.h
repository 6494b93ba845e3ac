// How much of its study a result file holds, in words.
#pragma once

#include <string>
#include <vector>

#include "results_schema/reader.h"

namespace shardscape::cli {

/// "of 5,891,184 in the study, the first 1,000", "..., a sample of 1,000", "..., shard 3 of 16": the points of a sweep;
/// empty where they are all of the study's.
std::string of_the_study(const results::BlockLayout& layout, const results::ShardRange& shards);
/// The same of the rows of a file: "..., the feasible ones of shard 3 of 16"; of a running sweep, which chooses last,
/// "..., candidates for the 7 best by step_time_s". Empty where they are (or will be) all of the study's points.
std::string of_the_study(const results::ResultReader& reader);

/// "the feasible ones", "the 1,000 best by step_time_s"; empty where all rows are stored.
std::string stored_rows_text(const results::StoredRows& rows, const std::vector<std::string>& objectives);

/// The same as a clause that follows a number of points: " (of ... the first 1,000)"; or nothing.
std::string in_brackets(const std::string& text);

/// For outputs that hold rows alone: a note on stderr where they are not all of the study's.
void note_selection(const results::ResultReader& reader);

}  // namespace shardscape::cli
