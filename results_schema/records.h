// What one row of the points table is made from.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "engine/prediction.h"
#include "engine/spec/assessment.h"
#include "engine/spec/fault.h"
#include "engine/spec/plan.h"
#include "engine/spec/workload.h"

namespace shardscape::results {

/// What the fault samples of one point come to. Slowdown is time with faults over time without, less 1.
/// Samples that cut the fabric (or have no time in range) count in `unreachable` alone; NaN where nothing is
/// left.
struct FaultSummary {
  std::int32_t samples = 0;
  std::int32_t unreachable = 0;
  double mean = 0, p50 = 0, p95 = 0, p99 = 0, max = 0;  ///< percentiles by nearest rank
  double above_1pct = 0;                                ///< share of the samples above 0.01
  double standard_error = 0;                            ///< of the mean; NaN below two samples
  /// Of the slowest sample (the first of equals), in its first fault: -1 where nothing slows, or where the
  /// fault was none of a link (of a device).
  std::int32_t worst_link = -1, worst_device = -1;

  /// The mean time of what takes `healthy` seconds without faults.
  [[nodiscard]] double expected(double healthy) const { return healthy * (1 + mean); }
};

/// One row of /fault_samples: one fault of one sample of one point.
struct FaultSampleRecord {
  std::uint64_t point_id = 0;
  std::int32_t sample = 0;
  std::uint8_t fault = 0;  ///< 0, 1, ... among those of the sample
  Status status = Status::ok;
  FaultKind kind = FaultKind::soft_link;
  std::int32_t link = -1, device = -1;
  double derate = 1;       ///< share that remains
  double step_time_s = 0;  ///< NaN unless ok
  double slowdown = 0;     ///< likewise
};

/// Borrowed views of one evaluated point; valid while the row is being encoded.
struct PointRecord {
  std::uint64_t point_id = 0;
  const ParallelPlan& plan;
  const WorkloadSpec& workload;
  std::span<const double> hardware;  ///< value (or code) of each hardware axis, in the order of the axes
  const Prediction& prediction;
  double goodput = std::numeric_limits<double>::quiet_NaN();  ///< share; of an ok point, with reliability
  const FaultSummary* faults = nullptr;  ///< of a point that is ok, in a study with faults
  Assessment assessment = {};
};

/// One row of /links.
struct LinkRecord {
  std::int32_t link_id = 0;
  std::int32_t source = 0;  ///< vertex: a rank below the number of ranks, a switch above
  std::int32_t destination = 0;
  std::int32_t dimension = 0;  ///< index in the fabric's list
  double bandwidth_bytes_per_s = 0;
  double latency_s = 0;
};

}  // namespace shardscape::results
