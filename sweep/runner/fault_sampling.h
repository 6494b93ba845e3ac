// Fault samples of one point.
#pragma once

#include <cstdint>
#include <vector>

#include "results_schema/rows/records.h"
#include "sweep/faults/fault_sampler.h"
#include "sweep/faults/fault_statistics.h"
#include "sweep/runner/evaluator.h"

namespace shardscape::sweep {

/// The draws of a study, made at once: every point meets the same ones. Immutable.
class FaultDraws {
 public:
  FaultDraws(const FaultStudy& study, const network::Fabric& fabric);
  [[nodiscard]] const std::vector<FaultDraw>& draws() const { return draws_; }
  [[nodiscard]] const FaultStudy& study() const { return study_; }

 private:
  FaultStudy study_;
  std::vector<FaultDraw> draws_;
};

/// A point's time under one draw.
struct SampledTime {
  Status status = Status::ok;
  double seconds = 0;   ///< time with faults; NaN where unreachable
  double slowdown = 0;  ///< time with faults over time without, less 1; NaN where unreachable
};
/// Times the point that `evaluator` evaluated last, which was ok with prediction `healthy`, under a draw.
SampledTime time_under(const FaultDraw& draw, const Prediction& healthy, Phase phase, Evaluator& evaluator);

/// As time_under(), but also appends the sample's rows; returns the slowdown.
double sample_fault(const FaultDraw& draw, std::uint64_t point_id, const Prediction& healthy, Phase phase,
                    Evaluator& evaluator, std::vector<results::FaultSampleRecord>& rows);

/// Samples the draws in order until the study has enough, and appends the samples' rows to `rows`. The result depends
/// on the point alone.
results::FaultSummary sample_faults(const FaultDraws& draws, std::uint64_t point_id,
                                    const Prediction& healthy, Phase phase, Evaluator& evaluator,
                                    std::vector<results::FaultSampleRecord>& rows);

}  // namespace shardscape::sweep
