// The fault samples of one point.
#pragma once

#include <cstdint>
#include <vector>

#include "results_schema/records.h"
#include "sweep/faults/fault_sampler.h"
#include "sweep/faults/fault_statistics.h"
#include "sweep/runner/evaluator.h"

namespace shardscape::sweep {

/// The time that faults slow down: of a step, or of one whole request.
inline Seconds slowed_time(const Prediction& prediction, Phase phase) {
  return phase == Phase::training ? prediction.step_time : prediction.e2e;
}

/// The draws of a study, all at once: every point meets the same. Immutable.
class FaultDraws {
 public:
  FaultDraws(const FaultStudy& study, const network::Fabric& fabric);
  [[nodiscard]] const std::vector<FaultDraw>& draws() const { return draws_; }
  [[nodiscard]] const FaultStudy& study() const { return study_; }

 private:
  FaultStudy study_;
  std::vector<FaultDraw> draws_;
};

/// One sample of a point.
struct SampledTime {
  Status status = Status::ok;
  double seconds = 0;   ///< NaN where unreachable
  double slowdown = 0;  ///< time with faults over time without, less 1; likewise
};
/// Of the point that `evaluator` evaluated last, found ok with prediction `healthy`.
SampledTime time_under(const FaultDraw& draw, const Prediction& healthy, Phase phase, Evaluator& evaluator);

/// The same; appends its rows and gives back the slowdown.
double sample_fault(const FaultDraw& draw, std::uint64_t point_id, const Prediction& healthy, Phase phase,
                    Evaluator& evaluator, std::vector<results::FaultSampleRecord>& rows);

/// The same under the draws in order, until the study has enough. Appends its rows to `rows`. The result
/// depends on the point alone.
results::FaultSummary sample_faults(const FaultDraws& draws, std::uint64_t point_id,
                                    const Prediction& healthy, Phase phase, Evaluator& evaluator,
                                    std::vector<results::FaultSampleRecord>& rows);

}  // namespace shardscape::sweep
