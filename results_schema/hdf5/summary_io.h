// Reads and writes /summary in HDF5, and names the columns that it is made from. Private to this folder.
#pragma once

#include <string>
#include <vector>

#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/rows/summary.h"

namespace shardscape::results {

/// The names of the columns that a summary is made from: point_id, status, reason, then the objectives.
std::vector<std::string> summary_columns(const std::vector<std::string>& objectives);

/// The direction of each objective; all objectives have one (manifest_problems).
std::vector<Better> directions_of(const std::vector<std::string>& objectives,
                                  std::span<const ColumnInfo> columns);

void write_summary(const H5File& file, const Summary& summary, const std::vector<std::string>& objectives,
                   std::span<const ColumnInfo> columns);

Summary read_summary(const H5File& file, const std::vector<std::string>& objectives);

}  // namespace shardscape::results
