// Describes how much of its study a result file holds.
#pragma once

#include <string>
#include <vector>

#include "results_schema/reading/reader.h"

namespace shardscape::cli {

/// The points of a sweep: "of 5,891,184 in the study, the first 1,000", "..., a sample of 1,000", "..., shard 3 of 16";
/// empty where they are all of the study's.
std::string of_the_study(const results::BlockLayout& layout, const results::ShardRange& shards);
/// The rows of a file: "..., the feasible ones of shard 3 of 16"; for a running sweep, which chooses in the end, "...,
/// candidates for the 7 best by step_time_s". Empty where they are (or will be) all of the study's points.
std::string of_the_study(const results::ResultReader& reader);

/// The rows that are stored: "the feasible ones", "the 1,000 best by step_time_s"; empty where all are.
std::string stored_rows_text(const results::StoredRows& rows, const std::vector<std::string>& objectives);

/// The text as a clause behind a number of points: " (of ... the first 1,000)"; empty for an empty text.
std::string in_brackets(const std::string& text);

/// For outputs that only have rows: prints a note on stderr if they are not all of the study's.
void note_selection(const results::ResultReader& reader);

}  // namespace shardscape::cli
