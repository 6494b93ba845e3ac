// `simulate --compare`: shows one plan in both modes side by side.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/spec/prediction.h"
#include "engine/spec/workload.h"

namespace shardscape::cli {

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
