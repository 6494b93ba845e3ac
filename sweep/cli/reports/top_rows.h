// Finds the rows of a result file that `top` shows, in one pass over the columns that decide it.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"
#include "results_schema/rows/columns.h"
#include "sweep/space/expression.h"

namespace shardscape::cli {

/// The choice of rows. Names are those of columns, or the short names of plan axes.
struct TopQuestion {
  std::string where;               ///< condition on the columns; empty: all rows
  std::string by;                  ///< the column that ranks
  std::vector<std::string> per;    ///< take the best row of each combination of values in these columns
  std::vector<std::string> front;  ///< take the Pareto front over these columns instead of a ranking
  std::uint64_t count = 0;         ///< the most rows
};

struct TopRows {
  std::vector<std::uint64_t> rows;  ///< in the order in which they are shown
  /// Number of rows that satisfy `where`; only feasible ones unless `where` names the status.
  std::uint64_t looked_at = 0;
  bool any_status = false;  ///< `where` names the status
  /// By row: rows that satisfy `where` but were left out because of their status.
  std::vector<bool> infeasible;
  bool any_infeasible = false;
};

/// The names by which a condition knows a column: all of its own, and its heading.
std::vector<sweep::ExpressionName> condition_names(const results::ColumnInfo& column);

/// The column that a name means: its own, that of a plan axis (tp), the one without its unit (step_time, memory), its
/// heading, or a path of the study (device.hbm.bandwidth), in any capitals. BadInput, naming `option`, where there is
/// none.
const results::ColumnInfo& require_column(const results::ResultReader& reader, std::string_view name,
                                          std::string_view option);

/// Lists the columns with their names, units and meanings.
void print_columns(std::ostream& out, const results::ResultReader& reader);

/// Finds the rows. Equal values are ordered by row, rows without a value come last. Takes a bit of memory per row of
/// the file, and the answer. BadInput where a column is unknown or the condition cannot be read.
TopRows find_top_rows(const results::ResultReader& reader, const TopQuestion& question);

}  // namespace shardscape::cli
