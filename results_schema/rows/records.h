// The data that one row of the points table is made from.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/spec/assessment.h"
#include "engine/spec/fault.h"
#include "engine/spec/plan.h"
#include "engine/spec/prediction.h"
#include "engine/spec/workload.h"

namespace shardscape::results {

/// Statistics of the fault samples of one point. Slowdown is time with faults over time without, less 1. Samples that
/// cut the fabric (or have no time in range) count only in `unreachable`; NaN where no others are left.
struct FaultSummary {
  std::int32_t samples = 0;
  std::int32_t unreachable = 0;
  /// Mean, percentiles by nearest rank, and largest slowdown.
  double mean = 0, p50 = 0, p95 = 0, p99 = 0, max = 0;
  double above_1pct = 0;      ///< share of the samples with a slowdown above 0.01
  double standard_error = 0;  ///< standard error of the mean; NaN below two samples
  /// Link and device of the first fault of the slowest sample (the first among equals): -1 where nothing slows the
  /// point, or where that fault was of neither kind.
  std::int32_t worst_link = -1, worst_device = -1;

  /// Mean time under faults of something that takes `healthy` seconds without.
  [[nodiscard]] double expected(double healthy) const { return healthy * (1 + mean); }
};

/// One row of /fault_samples: one fault of one sample of one point.
struct FaultSampleRecord {
  std::uint64_t point_id = 0;
  std::int32_t sample = 0;
  std::uint8_t fault = 0;  ///< number of the fault within its sample, from 0
  Status status = Status::ok;
  FaultKind kind = FaultKind::soft_link;
  std::int32_t link = -1, device = -1;
  double derate = 1;       ///< share of the rate that remains
  double step_time_s = 0;  ///< seconds; NaN unless the sample is ok
  double slowdown = 0;     ///< NaN unless the sample is ok
};

/// Borrowed views of one evaluated point, valid while the row is encoded.
struct PointRecord {
  std::uint64_t point_id = 0;
  const ParallelPlan& plan;
  const WorkloadSpec& workload;
  std::span<const double> hardware;  ///< value (or code) on each hardware axis, in the order of the axes
  const Prediction& prediction;
  /// Share of time; for an ok point of a study with reliability.
  double goodput = std::numeric_limits<double>::quiet_NaN();
  const FaultSummary* faults = nullptr;  ///< for an ok point of a study with faults
  Assessment assessment;
  bool promises_kept = false;                                   ///< of a timed point
  double missed_by = std::numeric_limits<double>::quiet_NaN();  ///< of a point that is `missed`

  // Not an aggregate, so that vectors can make rows in place.
  PointRecord(std::uint64_t id, const ParallelPlan& of, const WorkloadSpec& under, std::span<const double> on,
              const Prediction& predicted)
      : point_id(id), plan(of), workload(under), hardware(on), prediction(predicted) {}
};

/// One row of /links.
struct LinkRecord {
  std::int32_t link_id = 0;
  std::int32_t source = 0;  ///< a vertex: a rank, or from the number of ranks on a switch
  std::int32_t destination = 0;
  std::int32_t dimension = 0;  ///< index in the fabric's list of dimensions
  double bandwidth_bytes_per_s = 0;
  double latency_s = 0;
};

/// Rows [begin, end) of the table; an end past the last row means the last row.
struct RowRange {
  std::uint64_t begin = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
};

/// Adds a row behind all rows of ascending ranges.
inline void append_row(std::vector<RowRange>& ranges, std::uint64_t row) {
  if (ranges.empty() || ranges.back().end != row) ranges.push_back({row, row});
  ranges.back().end = row + 1;
}

}  // namespace shardscape::results
