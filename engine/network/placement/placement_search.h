// Searches a better placement: local search over swaps of two ranks.
//
// Every start is improved by first-improvement descent, first on a smooth stand-in for the congestion (the
// 4-norm over links in place of the maximum, so that a swap counts even where other links stay as loaded),
// then on the cost itself. The best is then shaken by a few random swaps and improved again, until the budget
// is spent (iterated local search, Lourenco, Martin and Stutzle 2003). A swap costs the routes of the flows
// of its two ranks; the loads are whole numbers, so nothing drifts.
//
// The budget counts swaps, not time, and the random numbers are keyed by a seed: the same input gives the
// same placement on every machine. The plain order is always among the starts, so the result is never worse.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/network/placement/placement.h"

namespace shardscape::network {

/// Counts flows on every link under a placement that changes by swaps. Fabric and demand must outlive this object.
/// Memory: O(links * classes), and all routes for fabrics of up to 1,024 ranks.
class PlacementLoads {
 public:
  /// `placement` may be empty, which is the plain order.
  PlacementLoads(const Fabric& fabric, const PlacementDemand& demand, const Placement& placement);
  ~PlacementLoads();

  void set(const Placement& placement);
  /// Exchanges the places of two logical ranks.
  void swap(std::int32_t a, std::int32_t b);

  [[nodiscard]] const Placement& placement() const;
  [[nodiscard]] PlacementCost cost() const;
  /// A smooth stand-in for congestion: sum over classes of bytes * (sum over links of (flows / bandwidth)^4)^(1/4).
  [[nodiscard]] double smooth() const;
  /// Number of flows of one class on one link.
  [[nodiscard]] std::int32_t flows(std::size_t traffic_class, std::int32_t link) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct PlacementSearch {
  std::int64_t max_swaps = 400'000;  ///< swaps to try at most, over all starts and shakes
  std::uint64_t seed = 1;
  std::size_t candidates = 16;  ///< number of placements to keep, >= 1
};

struct PlacementCandidate {
  Placement placement;  ///< never empty
  PlacementCost cost;
};

struct PlacementResult {
  PlacementCost plain;
  /// The best placements met, of distinct costs, the best first; never empty. The first is never worse than `plain`.
  std::vector<PlacementCandidate> candidates;
  std::int64_t swaps = 0;  ///< number of swaps tried

  [[nodiscard]] const PlacementCandidate& best() const { return candidates.front(); }
};

/// Searches better placements. `starts`: further placements to begin with. Cheaper ones go first and may use up to half
/// of the budget together; the rest is for shakes.
PlacementResult improve_placement(const Fabric& fabric, const PlacementDemand& demand,
                                  std::span<const Placement> starts, const PlacementSearch& search = {});

}  // namespace shardscape::network
