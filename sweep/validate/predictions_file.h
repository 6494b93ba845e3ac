// Writes predictions as CSV: one line per line of the tables, in their order.
#pragma once

#include <span>
#include <string>

#include "sweep/validate/evaluation.h"

namespace shardscape::validate {

struct NamedEvaluation {
  std::string file;
  const Evaluation* evaluation = nullptr;
};

/// The columns: `file` where there are several, `line` (the header is 1), `id` as in the table, the prediction columns
/// of every kind that occurs, `reason`. A cell is empty where the column makes no sense for the row; all are empty
/// where the row is not predicted, and `reason` says why.
std::string predictions_csv(std::span<const NamedEvaluation> evaluations);

}  // namespace shardscape::validate
