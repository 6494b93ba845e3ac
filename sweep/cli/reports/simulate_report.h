// Output of `simulate` about one point: as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "engine/details.h"
#include "engine/neighbours.h"
#include "engine/spec/scenario.h"
#include "sweep/cli/reports/placement_report.h"
#include "sweep/cli/reports/report.h"
#include "sweep/evidence/assess.h"
#include "sweep/study/study.h"

namespace shardscape::cli {

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

}  // namespace shardscape::cli
