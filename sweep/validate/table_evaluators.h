// The evaluators of the kinds of tables, and the readers of those whose rows are predicted one by one (kernels,
// collectives, rates of servers). Private to this folder.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>

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

/// A row as its kind of table reads it.
struct Benchmark {
  std::string what;
  std::string kin;  ///< see EvaluatedRow
  Regime regime;
  /// What was measured and what is predicted, by column of predictions; nothing where that is not known.
  std::array<std::optional<double>, 2> measured, predicted;
  std::optional<std::string> unpredicted;  ///< why nothing is predicted
  double bytes = 0;                        ///< bytes of a collective
  bool in_one_node = false;                ///< whether that has all its ranks in one node
};

/// Reads a row and predicts it; what is wrong with the row is reported to the reader.
using ReadBenchmark = std::function<void(RowReader& reader, Benchmark& row)>;

/// Readers of the rows of one table; both references must outlive them.
ReadBenchmark gemm_rows(Presets& presets, const EvaluateOptions& options);
ReadBenchmark collective_rows(Presets& presets, const EvaluateOptions& options);
ReadBenchmark mlperf_rows(Presets& presets, const EvaluateOptions& options);

/// Read rows of grouped products of experts, of latent attention, and of exchanges between experts, and predict them.
/// `device` is null where its preset is missing; then nothing is predicted.
void read_experts(RowReader& reader, const DeviceSpec* device, Benchmark& row);
void read_latent(RowReader& reader, const DeviceSpec* device, Benchmark& row);
void read_exchange(RowReader& reader, const DeviceSpec* device, Benchmark& row);

/// Reads the times of dispatch and combine; of normal exchanges transmission and notification together.
void read_exchange_times(RowReader& reader, Benchmark& row);

}  // namespace shardscape::validate
