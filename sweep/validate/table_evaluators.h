// The evaluators of the kinds of tables. Private to this folder.
#pragma once

#include <span>

#include "sweep/validate/evaluation.h"
#include "sweep/validate/plan_row.h"
#include "sweep/validate/predict_plans.h"
#include "sweep/validate/row_reader.h"

namespace shardscape::validate {

/// Each function fills in the whole evaluation except the kind and the header's problems.
void evaluate_plans(const Table& table, Presets& presets, const EvaluateOptions& options, Evaluation& out);
void evaluate_open_loop(const Table& table, Presets& presets, const EvaluateOptions& options,
                        Evaluation& out);
/// Evaluates tables whose rows are predicted one by one: all other kinds.
void evaluate_benchmarks(const Table& table, Presets& presets, const EvaluateOptions& options,
                         Evaluation& out);

/// The conditions of a row of plans.
Regime regime_of(const PlanRow& row, Presets& presets, const std::filesystem::path& folder);

/// Counts a row of plans that is refused among the problems, or among the rows that cannot be predicted.
void add_refusals(const Table& table, const PlanRow& row, std::span<const RowRefusal> refusals,
                  Evaluation& out);

/// The row's own id, or its number in the table, counted from 1.
std::string row_id(const RowReader& reader, const Table& table, const TableRow& row);

}  // namespace shardscape::validate
