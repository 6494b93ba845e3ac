// Summaries of a result file's fault samples, by plan and by part of the machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"

namespace shardscape::sweep {

/// A feasible point with samples.
struct PlanSensitivity {
  std::uint64_t row = 0;  ///< row in the table of points
  std::uint64_t point_id = 0;
  std::uint64_t rank = 0;             ///< rank by expected time, from 1
  std::uint64_t healthy_rank = 0;     ///< rank by time without faults, from 1
  double healthy_s = 0;               ///< time of a step (inference: of a request) without faults
  double expected_s = 0;              ///< mean time over its samples
  double mean = 0, p95 = 0, max = 0;  ///< mean, 95th percentile and largest slowdown
  double memory_bytes = 0;
  bool pareto =
      /// Whether no other plan is at least as good in healthy time, p95 and memory, and better in one of them.
      false;
};

/// Feasible points by expected time, then by point id; points all of whose samples cut the fabric come last. StoreError
/// where the file has no fault samples.
std::vector<PlanSensitivity> rank_plans(const results::ResultReader& reader);

/// The samples of all points whose faults include a place (a link, a device, ...), or a place of a group.
struct PlaceSensitivity {
  std::string place;
  bool link = false;              ///< whether it is a link, or links; else a device, an adapter or a switch
  std::uint64_t samples = 0;      ///< number of samples over all points
  std::uint64_t unreachable = 0;  ///< number of these that cut the fabric; the other columns leave them out
  double mean = 0, max = 0;       ///< slowdowns; NaN where no samples are left
  double above_1pct = 0;          ///< share of the samples with a slowdown above 0.01
  /// How often it was drawn, each time for all points: where seldom, a slowdown says more of what was drawn than of the
  /// place.
  std::uint64_t draws = 0;
  double left = 0;  ///< mean share of its rate that was left, 0 of what is down
};

/// Places by mean slowdown, largest first; equal ones in the order of links, then devices.
std::vector<PlaceSensitivity> rank_places(const results::ResultReader& reader);
/// Groups of places: links by dimension, devices by kind of fault.
std::vector<PlaceSensitivity> rank_dimensions(const results::ResultReader& reader);

/// A point of the cumulative distribution: this share of the samples has at most this slowdown.
struct DistributionPoint {
  double share = 0;
  double slowdown = 0;
};
/// The distribution over all samples of all points that cut nothing, by nearest rank, at each of the shares (0..1].
std::vector<DistributionPoint> slowdown_distribution(const results::ResultReader& reader,
                                                     std::span<const double> shares);

}  // namespace shardscape::sweep
