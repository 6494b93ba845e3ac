// Which rows of a result file go into the page. Pure functions of values in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "results_schema/columns.h"

namespace shardscape::report {

/// Rows [0, values.size()) by value, the best first, equals by row; rows without a value (NaN) last. `better`
/// other than `larger` means smaller.
std::vector<std::size_t> ranked_rows(std::span<const double> values, results::Better better);

/// Those of ranked_rows() that have a value.
std::vector<std::size_t> ranked_values(std::span<const double> values, results::Better better);

/// The first `count` of ranked_rows() that have a value, in O(n).
std::vector<std::size_t> best_rows(std::span<const double> values, results::Better better, std::size_t count);

/// The rows that no other beats in all of `columns` at once (of equals the first), in any order. Rows without
/// one of the values take no part. One direction per column.
std::vector<std::size_t> pareto_rows(std::span<const std::vector<double>> columns,
                                     std::span<const results::Better> directions);

/// pareto_rows() of the rows of each value of `groups` by themselves, groups ascending; NaN is no group.
std::vector<std::size_t> pareto_rows_per_group(std::span<const double> groups,
                                               std::span<const std::vector<double>> columns,
                                               std::span<const results::Better> directions);

/// At most `limit` of the rows [0, ids.size()), ascending: all where they are no more; otherwise those of
/// `keep` (each of them, even beyond the limit) and as many others as there is room for. Who gets the room
/// depends on the point's id alone, so that a finished file, its segments and a larger shard agree.
std::vector<std::size_t> sample_rows(std::span<const std::uint64_t> ids, std::span<const std::size_t> keep,
                                     std::size_t limit);

}  // namespace shardscape::report
