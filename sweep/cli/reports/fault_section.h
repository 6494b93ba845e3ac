// The section of `check` about the faults of a study.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>

#include "sweep/runner/sweep_job.h"

namespace shardscape::cli {

/// The mean cost of a fault draw of a point in a sweep.
struct FaultCost {
  double draws_per_point = 0;  ///< for points that are ok; fewer than the samples where a target stops them
  double seconds_per_draw = 0;
  double bytes_per_draw = 0;  ///< bytes in the result file
};

/// Measures the cost on those of `points` that are ok, one after the other, for a few CPU seconds at most. Zeros where
/// none is ok. `job` must have faults.
FaultCost measure_faults(const sweep::SweepJob& job, std::span<const std::uint64_t> points,
                         const sweep::EvaluatorFactory& factory);

/// Prints kinds with their places, derate, placement, samples and, for `feasible` points, the draws of all.
void print_faults(std::ostream& out, const sweep::SweepJob& job, double feasible, const FaultCost& cost);

/// Prints the machine's failures, the interval between checkpoints, and the share of time left for work.
void print_reliability(std::ostream& out, const sweep::Study& study);

}  // namespace shardscape::cli
