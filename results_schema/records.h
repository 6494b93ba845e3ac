// What one row of the points table is made from.
#pragma once

#include <cstdint>
#include <span>

#include "engine/prediction.h"
#include "engine/spec/plan.h"
#include "engine/spec/workload.h"

namespace shardscape::results {

/// Borrowed views of one evaluated point; valid while the row is being encoded.
struct PointRecord {
  std::uint64_t point_id = 0;
  const ParallelPlan& plan;
  const WorkloadSpec& workload;
  std::span<const double> hardware;  ///< value (or code) of each hardware axis, in the order of the axes
  const Prediction& prediction;
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
