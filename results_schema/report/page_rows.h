// What the page shows of a file's rows, in a few passes over them; memory does not grow with their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "results_schema/reader.h"
#include "results_schema/report/axis_worth.h"

namespace shardscape::report {

/// Best rows that are on the page whatever is sampled: by every column that has a better end.
inline constexpr std::size_t kBestKept = 100;

struct PageAxis {
  std::size_t column = 0;         ///< among those of the file
  std::vector<AxisValue> values;  ///< two or more
};

struct PageRows {
  std::uint64_t feasible = 0;               ///< in the file
  std::vector<std::uint64_t> ids;           ///< points of the feasible rows that are shown, the best first
  std::vector<std::vector<double>> values;  ///< of those rows, by column of the file
  std::vector<PageAxis> axes;               ///< those that vary, of a file that stands for its study
};

/// What is asked of the rows.
struct PageQuestion {
  std::string ranking;                        ///< the column that ranks them
  std::pair<std::string, std::string> shown;  ///< columns of the scatter: their front is kept
  std::string load;                           ///< a column: so is the front of each of its values
  std::size_t max_points = 0;                 ///< shown, see SampledRows
};

PageRows read_page_rows(const results::ResultReader& reader, const PageQuestion& question);

}  // namespace shardscape::report
