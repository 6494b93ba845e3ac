// Compares two result files of one study, column by column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"

namespace shardscape::results {

/// Why two files cannot be compared row by row: other studies (and where these differ first), columns, points, or
/// numbers of fault samples. Nothing where they can.
std::optional<std::string> why_not_comparable(const ResultReader& a, const ResultReader& b);

struct ColumnDifference {
  std::string table;  ///< "points" or "fault_samples"
  std::string column;
  std::uint64_t rows = 0;      ///< number of rows that differ
  double largest = 0;          ///< |a - b| / max(|a|, |b|); infinite where one is NaN
  std::uint64_t point_id = 0;  ///< point of the first row that differs by `largest`
  double a = 0, b = 0;         ///< the two values in that row
};

/// The columns of /points and /fault_samples in which rows differ by more than `tolerance`, relative, in file order.
/// Two NaNs are equal; codes and integers must be the same. The files must be comparable.
std::vector<ColumnDifference> differing_columns(const ResultReader& a, const ResultReader& b,
                                                double tolerance);

}  // namespace shardscape::results
