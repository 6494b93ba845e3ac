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

struct ServedColumn {
  const char* measured;  ///< the column of measurements
  const char* key;       ///< of the metric: "ttft_p50"
  const char* name;      ///< for readers, and what the measured column is
  /// The predicted value; nothing where it makes no sense. `simulated`: the load was simulated request by request.
  std::optional<double> (*get)(const Prediction& prediction, bool simulated);
  const char* unit = "s";
  /// The column of predictions: predicted_ and the name of the measured one without measured_.
  [[nodiscard]] std::string predicted() const;
};

/// Columns of tables of servers in closed loop; the first three are the means that every such table may have.
inline constexpr std::size_t kTtftColumn = 0, kItlColumn = 1, kE2eColumn = 2, kTtftP50Column = 4,
                             kTtftP99Column = 7, kServedColumns = 20;
std::span<const ServedColumn, kServedColumns> served_columns();
/// Columns of tables of servers in open loop (TableKind::open_loop).
std::span<const ServedColumn> open_loop_columns();

using ServedValues = std::array<std::optional<double>, kServedColumns>;
/// Reads what a row measures. Printed gaps between tokens are those between events of a stream, which may have many
/// tokens: they are left out but where `itl_over_tpot_mean` says that an event is a token.
ServedValues read_served(RowReader& reader);

}  // namespace shardscape::validate
