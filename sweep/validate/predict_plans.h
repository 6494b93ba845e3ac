// Predicts rows of tables of plans.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/spec/prediction.h"
#include "sweep/ranks/ranks.h"
#include "sweep/validate/plan_row.h"
#include "sweep/validate/presets.h"

namespace shardscape::validate {

/// Why a row cannot be predicted: the column at fault, what is wrong and what would be right.
struct RowRefusal {
  std::string column;
  std::string message;
  bool rejected = false;  ///< by the engine, as the plan is impossible
};
struct PlanPrediction {
  Prediction prediction;
  /// The memory that the row measures, see MemoryOf; context and communication library lie outside the allocator.
  Bytes memory;
};
using RowPrediction = tl::expected<PlanPrediction, std::vector<RowRefusal>>;

/// A strict order of settings: rows of which neither is less share a simulator.
bool setting_less(const PlanRow& a, const PlanRow& b);

/// What is wrong with the presets that a row names.
std::vector<RowRefusal> check_presets(const std::string& model, const std::string& cluster,
                                      const std::string& stack, Presets& presets,
                                      const std::filesystem::path& folder);

/// A result for each row, in order. Time is predicted whatever the memory verdict. Rows of one setting (model, cluster,
/// GPUs, stack, workload) share a simulator; at most one exists at a time. `folder`: where relative paths of presets
/// start. `reference`: the plain path, with the same results. `together`: processes that share the settings by calling
/// this with the same rows; rank 0 gets all results, other ranks only valid ones of their own. RankLost on rank 0.
std::vector<RowPrediction> predict_plans(std::span<const PlanRow> rows, Presets& presets,
                                         const std::filesystem::path& folder = {}, bool reference = false,
                                         ranks::Ranks* together = nullptr);

}  // namespace shardscape::validate
