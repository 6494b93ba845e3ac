// A row of a table of kernels or collectives, read and predicted. Private to this folder.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "sweep/validate/evaluation.h"
#include "sweep/validate/row_reader.h"

namespace shardscape::validate {

/// A row as far as its kind understands it.
struct Benchmark {
  std::string what;
  std::string kin;  ///< see EvaluatedRow
  Regime regime;
  tl::expected<double, std::string> predicted_s = tl::unexpected(std::string());  ///< or why there is none
  double combine_s = 0;  ///< of an exchange between experts, whose dispatch is predicted_s
  double bytes = 0;      ///< of a collective
};

/// The way out and the way back of an exchange, or the time alone.
using MeasuredTimes = std::array<std::optional<double>, 2>;

/// Grouped products of experts, latent attention, and exchanges between experts; `device` may be null where its
/// preset is missing, then nothing is predicted.
void read_experts(RowReader& reader, const DeviceSpec* device, Benchmark& row);
void read_latent(RowReader& reader, const DeviceSpec* device, Benchmark& row);
void read_exchange(RowReader& reader, const DeviceSpec* device, Benchmark& row);

/// What was measured: of normal exchanges transmission and notification together.
MeasuredTimes measured_times(TableKind kind, RowReader& reader);

}  // namespace shardscape::validate
