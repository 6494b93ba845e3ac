// How plans are evaluated.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "engine/spec/collective_tolerance.h"
#include "engine/spec/execution_mode.h"

namespace shardscape {

namespace network {
class SharedNetworks;
}

struct SimulateOptions {
  bool reference = false;        ///< no memos, no shared prices, no shortcuts: the same results, slowly
  bool time_infeasible = false;  ///< predict the time of points that do not fit in memory, too
  ExecutionMode mode = ExecutionMode::hierarchical;
  /// How far the network time of a collective may lie above its simulation where bounds prove it, relative,
  /// >= 1e-9 (network/collective_model.h).
  double collective_tolerance = kCollectiveTolerance;
  /// Rank of the fabric that each rank of the plan lies on (network/placement.h); empty: its own number.
  std::vector<std::int32_t> placement = {};
  /// Flattened, training: an execution that takes more events than this is given up, and the plan has no time
  /// (out_of_range). Of symmetric ranks those of one count, and those of lone rings not at all.
  std::int64_t most_events = std::numeric_limits<std::int64_t>::max();
  /// Fabrics and costs of collectives that simulators have in common (network/curve_store.h); null: each has its own.
  /// Changes no result.
  std::shared_ptr<network::SharedNetworks> networks = {};
};

}  // namespace shardscape
