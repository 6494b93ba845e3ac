// `simulate --compare`: one plan in both modes, side by side.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/prediction.h"

namespace shardscape::program {

struct ModeComparison {
  const Prediction& hierarchical;
  const Prediction& flattened;
  std::int64_t events = 0;  ///< of the flattened run
};

/// The step and its breakdown by class in both modes, and by how much the flattened one differs, in seconds
/// and as a share of the hierarchical step.
void print_comparison(std::ostream& out, const ModeComparison& comparison);

/// {"hierarchical": {step_time_s, breakdown}, "flattened": {...}, "difference": {...}, "events"}.
nlohmann::ordered_json to_json(const ModeComparison& comparison);

}  // namespace shardscape::program
