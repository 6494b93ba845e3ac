// What the fault samples of a result file say about its plans and about the machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results_schema/reader.h"

namespace shardscape::sweep {

/// One feasible point with samples.
struct PlanSensitivity {
  std::uint64_t row = 0;  ///< in the table of points
  std::uint64_t point_id = 0;
  std::uint64_t rank = 0;             ///< by expected time, from 1
  std::uint64_t healthy_rank = 0;     ///< by time without faults, from 1
  double healthy_s = 0;               ///< of one step (inference: of one request)
  double expected_s = 0;              ///< mean over its samples
  double mean = 0, p95 = 0, max = 0;  ///< of the slowdown
  double memory_bytes = 0;
  bool pareto =
      false;  ///< no other plan is at least as good in healthy time, p95 and memory, and better in one
};

/// Feasible points by expected time, then by point id; those whose every sample cuts the fabric are last.
/// StoreError where the file has no fault samples.
std::vector<PlanSensitivity> rank_plans(const results::ResultReader& reader);

/// All samples of all points whose faults include one place (a link, a device, ...) or one group of places.
struct PlaceSensitivity {
  std::string place;
  bool link = false;              ///< a link, or links; else a device, an adapter or a switch
  std::uint64_t samples = 0;      ///< over all points
  std::uint64_t unreachable = 0;  ///< of them; the rest of the columns leaves them out
  double mean = 0, max = 0;       ///< of the slowdown; NaN where nothing is left
  double above_1pct = 0;          ///< share
};

/// By mean slowdown, largest first; of equals as links are numbered, then devices.
std::vector<PlaceSensitivity> rank_places(const results::ResultReader& reader);
/// Links by dimension, devices by kind of fault.
std::vector<PlaceSensitivity> rank_dimensions(const results::ResultReader& reader);

/// One point of the cumulative distribution: this share of the samples slows by at most so much.
struct DistributionPoint {
  double share = 0;
  double slowdown = 0;
};
/// Over all samples of all points that cut nothing, by nearest rank, at each of the shares (0..1].
std::vector<DistributionPoint> slowdown_distribution(const results::ResultReader& reader,
                                                     std::span<const double> shares);

}  // namespace shardscape::sweep
