// Options of evaluating plans.
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
  bool reference = false;        ///< without memos, shared prices and shortcuts: the same results, slowly
  bool time_infeasible = false;  ///< also predicts the time of points that do not fit in memory
  /// Loads that are simulated request by request: instead of them, their floors (serving/live/load_floor.h).
  bool load_floors = false;
  ExecutionMode mode = ExecutionMode::hierarchical;
  /// How far the network time of a collective may lie above its simulation where bounds prove it, relative,
  /// >= 1e-9 (network/prices/collective_setup.h).
  double collective_tolerance = kCollectiveTolerance;
  /// The rank of the fabric on which each rank of the plan lies (network/placement/placement.h); empty: that of the
  /// same number.
  std::vector<std::int32_t> placement = {};
  /// Flattened training: an execution of more events than this is given up, and the plan has no time (out_of_range).
  /// Symmetric ranks count once, and events of rings that run alone don't count.
  std::int64_t most_events = std::numeric_limits<std::int64_t>::max();
  /// Fabrics and costs of collectives that several simulators share (network/prices/curve_store.h); null: this one has
  /// its own. Changes no result.
  std::shared_ptr<network::SharedNetworks> networks = {};
};

}  // namespace shardscape
