// The names of columns, wherever one is named: objectives, fronts, rankings and conditions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results_schema/rows/columns.h"

namespace shardscape::sweep {

/// The columns that studies of either phase may have, but for axes of hardware; those of both phases stand twice.
const std::vector<results::ColumnInfo>& fixed_columns();

/// The names of a column, its own first: a plan axis has its short one (tp), a quantity the one without its unit
/// (step_time, memory).
std::vector<std::string> names_of_column(std::string_view column, std::string_view unit);
inline std::vector<std::string> names_of_column(const results::ColumnInfo& column) {
  return names_of_column(column.name, column.unit);
}

/// The column among `known`, names of columns that every study may have, that a name means; the name itself where it
/// means none of them.
std::string column_meant(std::string_view name, std::span<const std::string> known);

}  // namespace shardscape::sweep
