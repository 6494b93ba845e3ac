// Output of `simulate`, as text and as JSON: one point, how its groups lie on the fabric and what a better placement
// gains, a single fault sample drawn again, and both modes side by side.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "engine/details.h"
#include "engine/neighbours.h"
#include "engine/network/placement/placement.h"
#include "engine/spec/prediction.h"
#include "engine/spec/scenario.h"
#include "engine/spec/workload.h"
#include "sweep/cli/reports/report.h"
#include "sweep/evidence/assess.h"
#include "sweep/faults/fault_sampler.h"
#include "sweep/placement/optimise_placement.h"
#include "sweep/study/study.h"

namespace shardscape::cli {

struct BetterPlacement {
  placement::OptimisedPlacement found;
  std::vector<network::AxisSpan> spans;
  Prediction prediction;  ///< with the better placement
};

struct PlacementReport {
  std::vector<network::AxisSpan> spans;  ///< of the plain order
  std::optional<BetterPlacement> better;
};

/// `details` and `prediction` must be those of the plain order. With `optimise` the plan must have a time.
PlacementReport study_placement(const Setting& setting, const ParallelPlan& plan, const Details& details,
                                const FaultSet& faults, bool reference, bool optimise);

nlohmann::ordered_json placement_json(const PlacementReport& report, const Setting& setting,
                                      const Prediction& prediction);
void print_placement(std::ostream& out, const PlacementReport& report, const Setting& setting,
                     const Prediction& prediction);

/// What is said of a point beside its prediction.
struct PointRemarks {
  std::vector<Neighbour> nearest_feasible;  ///< for a plan that is not feasible itself
  evidence::Finding finding;
  std::string evidence_reason;  ///< half a sentence
};
/// `setting` is number `index` of the study.
PointRemarks remarks_on(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan,
                        const Prediction& prediction, std::size_t index = 0);
/// The expected error of a point that has times: a line, and keys of its JSON.
std::string expected_error_text(const PointRemarks& remarks, Phase phase);
void add_expected_error(const PointRemarks& remarks, Phase phase, bool has_times,
                        nlohmann::ordered_json& json);

struct SimulatedPoint {
  const sweep::Study& study;
  const Setting& setting;
  const ParallelPlan& plan;
  const Prediction& prediction;
  const Details& details;
  const PlacementReport& placement;
  const PointRemarks& remarks;
};

/// The point as JSON. Values that were not computed for this verdict are null.
nlohmann::ordered_json to_json(const SimulatedPoint& point);

/// The operators on the critical rank.
Rows operators(const SimulatedPoint& point);

/// Prints verdict, times, memory against capacity, stages, breakdown, placement.
void print_report(std::ostream& out, const SimulatedPoint& point);

/// Prints the operators on the critical rank, one per line; of a simulated load what its servers did
/// (load_mix_report.h).
void print_operators(std::ostream& out, const SimulatedPoint& point);

/// Draws a sample. BadInput where the study has no faults, or no such sample.
sweep::FaultDraw draw_sample(const sweep::Study& study, const Setting& setting, std::uint64_t sample);

/// A draw, and the times of a plan with and without it.
struct DrawReport {
  const sweep::FaultDraw& draw;
  const Setting& setting;
  const Prediction& healthy;
  const Prediction& sick;
};

/// The report as {sample, faults: [{kind, link or device, derate}], healthy_time_s, time_s, slowdown}; times are null
/// where there are none.
nlohmann::ordered_json to_json(const DrawReport& report);

void print_draw(std::ostream& out, const DrawReport& report);

/// What faults of the command line cost, as `faults` {given, healthy_time_s, time_s, slowdown}; and the same in words.
/// Nothing where there are none.
void add_faults(const std::vector<std::string>& faults, const Setting& setting, const Prediction& healthy,
                const Prediction& sick, nlohmann::ordered_json& json);
void print_faults(std::ostream& out, const std::vector<std::string>& faults, const Setting& setting,
                  const Prediction& healthy, const Prediction& sick);

/// One plan in both modes, of `simulate --compare`.
struct ModeComparison {
  const Prediction& hierarchical;
  const Prediction& flattened;
  std::int64_t events = 0;  ///< events of the flattened run
  Phase phase = Phase::training;
  /// In training, ranks executed in the flattened run; like ranks are executed once.
  std::int32_t executed_ranks = 0;
};

/// Prints the step (inference: a request, its first token and the time between tokens) and its breakdown by class in
/// both modes, and the difference of the flattened mode in seconds and as a share of the hierarchical one.
void print_comparison(std::ostream& out, const ModeComparison& comparison);

/// The comparison as {"hierarchical": {step_time_s (inference: e2e_s, ttft_s, itl_s), breakdown}, "flattened": {...},
/// "difference": {...}, "events", "executed_ranks" (training)}.
nlohmann::ordered_json to_json(const ModeComparison& comparison);

}  // namespace shardscape::cli
