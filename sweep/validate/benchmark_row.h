// A row of a table whose rows are predicted one by one (kernels, collectives, rates of servers), and the readers of the
// kinds of such tables. Private to this folder.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "sweep/validate/evaluation.h"
#include "sweep/validate/row_reader.h"

namespace shardscape::validate {

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
