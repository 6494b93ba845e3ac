// Predictions as CSV: one row per predicted row, in the order of the tables.
#pragma once

#include <span>
#include <string>

#include "sweep/validate/evaluation.h"

namespace shardscape::validate {

struct NamedEvaluation {
  std::string file;
  const Evaluation* evaluation = nullptr;
};

/// Columns: `file` where there are several, `id`, then the prediction columns of every kind that is there;
/// a cell is empty where the column makes no sense for the row.
std::string predictions_csv(std::span<const NamedEvaluation> evaluations);

}  // namespace shardscape::validate
