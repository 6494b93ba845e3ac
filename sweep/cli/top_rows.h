// Which rows of a result file `top` shows, found in one pass over the columns that decide it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results_schema/columns.h"
#include "results_schema/reader.h"

namespace shardscape::cli {

/// What is asked of the rows. Names are those of columns or the short ones of plan axes.
struct TopQuestion {
  std::string where;               ///< an expression over the columns; empty for all rows
  std::string by;                  ///< the column that ranks
  std::vector<std::string> per;    ///< the best row of each combination of values in these
  std::vector<std::string> front;  ///< the Pareto front over these, in place of a ranking
  std::uint64_t count = 0;         ///< rows at most
};

struct TopRows {
  std::vector<std::uint64_t> rows;  ///< in the order in which they are shown
  std::uint64_t looked_at = 0;      ///< rows of `where`, feasible ones unless it says something on the status
  bool any_status = false;          ///< it does
  std::vector<bool> infeasible;     ///< by row, those of `where` that were not looked at for their status
  bool any_infeasible = false;
};

/// A column by its name or short name. BadInput, blaming `option`, where there is none.
const results::ColumnInfo& require_column(const results::ResultReader& reader, std::string_view name,
                                          std::string_view option);

/// Equal values rank by row, rows without a value last. Memory is a bit for each row of the file, and the answer.
/// BadInput where a column is unknown or the expression can't be read.
TopRows find_top_rows(const results::ResultReader& reader, const TopQuestion& question);

}  // namespace shardscape::cli
