// The attributes of a dataset that describe its column. Private to this folder.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results_schema/rows/columns.h"

namespace shardscape::results {

class Dataset;

/// Sets the attributes that name the codes of a column: CF flag_values and flag_meanings (blanks in names become
/// underscores).
void set_codes(const Dataset& dataset, ColumnType type, std::span<const std::string> meanings);

/// The words of a blank-separated list.
std::vector<std::string> words(const std::string& text);

/// Reads the description of a column from a dataset's type and attributes.
ColumnInfo column_info(const Dataset& dataset, const std::string& name);

}  // namespace shardscape::results
