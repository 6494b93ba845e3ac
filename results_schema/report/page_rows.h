// Finds the rows of a file that the page shows, in a few passes; memory does not grow with the number of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "results_schema/reading/reader.h"
#include "results_schema/report/axis_worth.h"

namespace shardscape::report {

/// Number of best rows that are always on the page, for each column that has a direction.
inline constexpr std::size_t kBestKept = 100;

struct PageAxis {
  std::size_t column = 0;         ///< place among the file's columns
  std::vector<AxisValue> values;  ///< at least two
};

struct PageRows {
  std::uint64_t feasible = 0;               ///< number of feasible rows in the file
  std::vector<std::uint64_t> ids;           ///< ids of the feasible rows that are shown, the best first
  std::vector<std::vector<double>> values;  ///< values of those rows, by column of the file
  std::vector<PageAxis> axes;               ///< axes that vary; only for a file that represents its study
};

/// The input of the page's choice of rows.
struct PageQuestion {
  std::string ranking;                        ///< the column that ranks them
  std::pair<std::string, std::string> shown;  ///< columns of the scatter, whose front is kept
  /// A column for which the front of each of its values is kept, too.
  std::string load;
  std::size_t max_points = 0;          ///< most rows shown, see SampledRows
  std::vector<std::size_t> rows = {};  ///< feasible rows of the file that are shown in any case
};

PageRows read_page_rows(const results::ResultReader& reader, const PageQuestion& question);

}  // namespace shardscape::report
