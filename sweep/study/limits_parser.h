// Reads what a study asks of its results: `promises:`, a map of latencies, and those of `constraints:` that begin with
// a result.
//
//   promises: {ttft_p95: 2 s, tpot_p95: 40 ms, e2e_p99: 30 s}
//             ttft, itl, tpot or e2e: the mean (also _mean), _p50, _p90, _p95, _p99
//   constraints: ["memory <= 70 GB", "mfu > 45 %", "requests_per_s >= 3 /s"]
//             a column of numbers, <=, <, >= or >, and a value with its unit. Columns whose name ends in _s or _bytes
//             may leave that out (memory: memory_peak_bytes); with it a number alone will do.
//
// The bound of a latency for each request is the largest that any promise about it names, since a share of them may
// take as long; an ITL promise is one about a request's TPOT, the mean of its gaps.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/spec/request_load.h"
#include "results_schema/rows/limits.h"
#include "sweep/space/expression.h"
#include "sweep/study/study.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

/// The promises of a study; all problems are reported.
std::vector<results::Limit> parse_promises(const yaml::Node& node, yaml::Diagnostics& diagnostics);
LatencyBounds bounds_of(std::span<const results::Limit> promises);
/// The promises as they are read.
yaml::Node write_promises(std::span<const results::Limit> limits);

/// Reads the constraints of a study, on its results and on plans.
class LimitReader {
 public:
  /// `columns`: those of the study. `all`: those of any study of its phase. Both must outlive this object.
  LimitReader(const results::ColumnTable& columns, const results::ColumnTable& all)
      : columns_(columns), all_(all) {}

  /// The limit that a text is; nothing where it is a constraint on plans.
  [[nodiscard]] tl::expected<std::optional<results::Limit>, ExpressionError> read(
      const std::string& text) const;

 private:
  [[nodiscard]] tl::expected<std::optional<results::Limit>, ExpressionError> read_limit(
      const std::string& text) const;
  [[nodiscard]] std::string about(std::string_view name) const;

  const results::ColumnTable& columns_;
  const results::ColumnTable& all_;
};

/// The constraint as it is read.
std::string limit_text(const results::Limit& limit);

}  // namespace shardscape::sweep
