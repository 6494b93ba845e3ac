// A row of a table of kernels or collectives, read and predicted. Private to this folder.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "sweep/validate/evaluation.h"
#include "sweep/validate/row_reader.h"

namespace shardscape::validate {

/// A row as its kind of table reads it.
struct Benchmark {
  std::string what;
  std::string kin;  ///< see EvaluatedRow
  Regime regime;
  /// Seconds, or the reason why nothing is predicted.
  tl::expected<double, std::string> predicted_s = tl::unexpected(std::string());
  /// Seconds of the combine, for an exchange between experts, whose dispatch is predicted_s.
  double combine_s = 0;
  double bytes = 0;  ///< bytes of a collective
};

/// Measured seconds: dispatch and combine of an exchange, or one time.
using MeasuredTimes = std::array<std::optional<double>, 2>;

/// Read rows of grouped products of experts, of latent attention, and of exchanges between experts, and predict them.
/// `device` is null where its preset is missing; then nothing is predicted.
void read_experts(RowReader& reader, const DeviceSpec* device, Benchmark& row);
void read_latent(RowReader& reader, const DeviceSpec* device, Benchmark& row);
void read_exchange(RowReader& reader, const DeviceSpec* device, Benchmark& row);

/// The measured times of a row; for normal exchanges transmission and notification together.
MeasuredTimes measured_times(TableKind kind, RowReader& reader);

}  // namespace shardscape::validate
