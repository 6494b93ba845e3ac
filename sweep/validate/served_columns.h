// What tables measure of servers: latencies of requests by mean and percentile, and rates. One row each, read by the
// reader of tables, the list of columns, the predictions and the errors.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "engine/spec/prediction.h"
#include "sweep/validate/row_reader.h"

namespace shardscape::validate {

/// What a row's prediction has beside: whether its load was simulated request by request.
struct ServedColumn {
  const char* measured;   ///< the column of measurements
  const char* predicted;  ///< the column of predictions
  const char* key;        ///< of the metric: "ttft_p50"
  const char* name;       ///< for readers
  const char* meaning;    ///< of the measured column
  const char* unit = "s";
  /// The predicted value; nothing where it makes no sense. `simulated`: the load was simulated request by request.
  std::optional<double> (*get)(const Prediction& prediction, bool simulated) = nullptr;
};
inline constexpr std::size_t kTtftColumn = 0, kItlColumn = 1, kE2eColumn = 2, kServedColumns = 20;
/// The first three are the means that every table of servers may have.
std::span<const ServedColumn, kServedColumns> served_columns();

using ServedValues = std::array<std::optional<double>, kServedColumns>;
ServedValues read_served(RowReader& reader);

}  // namespace shardscape::validate
