// Predictions for rows of plans.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/prediction.h"
#include "sweep/ranks/ranks.h"
#include "sweep/validate/plan_row.h"
#include "sweep/validate/presets.h"

namespace shardscape::validate {

/// Why a row cannot be predicted: the column to blame, what is wrong and what would be right.
struct RowRefusal {
  std::string column;
  std::string message;
  bool rejected = false;  ///< by the engine: the plan is impossible
};
struct PlanPrediction {
  Prediction prediction;
  Bytes
      memory;  ///< as the row measures it, see MemoryOf; context and communication library lie outside the allocator
};
using RowPrediction = tl::expected<PlanPrediction, std::vector<RowRefusal>>;

/// A total order of settings: rows that are neither less nor greater share a simulator.
bool setting_less(const PlanRow& a, const PlanRow& b);

/// What is wrong with the presets that a row names.
std::vector<RowRefusal> check_presets(const std::string& model, const std::string& cluster,
                                      const std::string& stack, Presets& presets,
                                      const std::filesystem::path& folder);

/// One result per row, in order. Time is predicted whatever the memory verdict. Rows of one setting (model,
/// cluster, GPUs, stack, workload) share a simulator; at most one exists at a time. `folder`: where relative
/// paths of presets start. `reference`: the plain path, same results. `together`: processes that deal the settings
/// among themselves, each calling this with the same rows: the results are on rank 0, elsewhere those of other ranks
/// are void. RankLost on rank 0.
std::vector<RowPrediction> predict_plans(std::span<const PlanRow> rows, Presets& presets,
                                         const std::filesystem::path& folder = {}, bool reference = false,
                                         ranks::Ranks* together = nullptr);

}  // namespace shardscape::validate
