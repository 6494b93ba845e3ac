// What `check` says about the faults of a study.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>

#include "sweep/runner/sweep_job.h"

namespace shardscape::cli {

/// What one fault draw of a point costs a sweep, in the mean.
struct FaultCost {
  double draws_per_point = 0;  ///< of points that are ok: fewer than the samples where a target stops them
  double seconds_per_draw = 0;
  double bytes_per_draw = 0;  ///< in the result file
};

/// Measured on those of `points` that are ok, one after the other, for some seconds of CPU at most. Zeros
/// where none is ok. `job` has faults.
FaultCost measure_faults(const sweep::SweepJob& job, std::span<const std::uint64_t> points,
                         const sweep::EvaluatorFactory& factory);

/// Kinds with their places, derate, placement, samples and, for `feasible` points, the draws of all.
void print_faults(std::ostream& out, const sweep::SweepJob& job, double feasible, const FaultCost& cost);

/// Failures of the machine, the interval between checkpoints, and the share of the time that is left.
void print_reliability(std::ostream& out, const sweep::Study& study);

}  // namespace shardscape::cli
