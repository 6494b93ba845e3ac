// What prices of collectives are made from (all that never changes), and the question that they answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/network/collectives/collective_op.h"
#include "engine/network/fabric/fabric.h"
#include "engine/network/groups/rank_group.h"
#include "engine/network/groups/slices.h"
#include "engine/spec/collective_tolerance.h"
#include "engine/spec/node_collectives.h"
#include "engine/spec/stack.h"

namespace shardscape::network {

class CurveStore;

/// How costs are found. All ways come to the same costs, the latter ones slowly.
enum class Analysis : std::uint8_t {
  by_tiles,     ///< groups that are copies of others are not looked at (tiles.h)
  every_group,  ///< every group is looked at; for tests
  plain  ///< every question simulates all groups at its bytes; nothing is remembered, no formula is used
};

/// The machine that collectives run on, and what they depend on besides. All references must outlive the prices.
struct CollectiveSetup {
  const Fabric& fabric;
  const StackProfile::Communication& communication;
  /// Peak rate of the ranks' memory; used where the stack's local_copy is not 0, and must be above 0 then.
  BytesPerSecond memory_rate;
  const NodeCollectives* node = nullptr;  ///< constants of the device, for `protocols`; may be null
  TokenExchange exchange = {};
  /// The share of all tokens that each expert gets, in their order; they add up to 1. Members of a group that
  /// dispatches hold equal numbers of them, in order. Empty: equal shares.
  std::vector<double> expert_shares = {};
  /// Logical rank i of the groups lies on rank placement[i] of the fabric (see placement.h); empty: on rank i. Where
  /// the placement is shorter than the fabric, its ranks are all there are.
  std::vector<std::int32_t> placement = {};
  /// How far bounds may lie above the simulated time that they stand for, relative, >= 1e-9.
  double tolerance = kCollectiveTolerance;
  Analysis analysis = Analysis::by_tiles;
  /// Cost curves and paces that other simulators have computed for this fabric and the stack's shares of its links;
  /// null: none.
  std::shared_ptr<CurveStore> curves = {};
};

/// The operation that is priced: one call, or several, on each of the sibling groups at once.
struct CollectiveKey {
  CollectiveOp op = CollectiveOp::all_reduce;
  /// all_reduce, broadcast: the buffer; reduce_scatter, all_to_all: the full input; dispatch, combine: that of a mean
  /// member; all_gather: the full output; passes: one message; exchanges: a copy of each token for each expert it goes
  /// through.
  Bytes bytes;
  RankGroup group;
  double calls =
      1;  ///< the operation is cut into this many collective calls (buckets), each with its own fixed cost
  /// A part of the machine that no group leaves, such as a pipeline stage. Only its groups are waited for.
  Slice slice = {};

  /// Whether nothing is sent.
  [[nodiscard]] bool nothing() const { return group.alone() || bytes <= Bytes(0); }
  friend bool operator==(const CollectiveKey&, const CollectiveKey&) = default;
};

}  // namespace shardscape::network
