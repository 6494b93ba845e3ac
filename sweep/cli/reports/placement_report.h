// How a plan's groups lie on the fabric, and what a better placement gains; as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <vector>

#include "engine/details.h"
#include "engine/network/placement/placement.h"
#include "engine/spec/scenario.h"
#include "sweep/placement/optimise_placement.h"

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

}  // namespace shardscape::cli
