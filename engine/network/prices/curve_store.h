// Stores that outlive the model which fills them: cost curves of operations and how operations slow each other
// (CurveStore), and the fabrics that they belong to (SharedNetworks). Threads, and settings of a study that differ in
// devices, models or workloads, send over the same links, where groups of ranks take the same times. The engine only
// asks; who keeps the stores, and for which threads, is up to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "engine/network/fabric/fabric.h"
#include "engine/network/groups/rank_group.h"
#include "engine/network/prices/cost_curve.h"
#include "engine/network/prices/link_loads.h"
#include "engine/network/prices/priced_network.h"
#include "engine/network/prices/ways.h"

namespace shardscape::network {

/// Everything that a curve, and the loads of links, depend on besides the fabric and the shares of its links, if every
/// link is healthy, every rank lies at its own number, and all members send equally much.
struct CurveKey {
  CollectiveOp op = CollectiveOp::all_reduce;
  CollectiveChoice choice;
  RankGroup group;
  /// >= 0: only between the member of each group with this number and the next one.
  std::int32_t boundary = -1;
  RankGroup::Level slice;  ///< only the groups of the first slice along this axis; extent 1: all groups
  /// Set for rings over channels, whose latencies contain the stack's steps; else 0.
  Seconds rank_step = {}, rank_step_scale_out = {};
  friend bool operator==(const CurveKey&, const CurveKey&) = default;
};

/// What the seconds of a curve depend on where a simulation may have to tell them.
struct CurvePoint {
  CurveKey curve;
  double bytes = 0, tolerance = 0;  ///< as in CostCurve::at()
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// Keeps curves of one fabric at one set of shares, for good. An entry is the same whichever model made it.
class CurveStore {
 public:
  virtual ~CurveStore() = default;
  /// Returns the curve; empty where it is not kept.
  [[nodiscard]] virtual std::optional<CostCurve> find(const CurveKey& key) const = 0;
  /// Keeps a curve; does nothing where there is one already.
  virtual void keep(const CurveKey& key, const CostCurve& curve) = 0;
  /// The same two functions for the seconds of a curve.
  [[nodiscard]] virtual std::optional<double> find(const CurvePoint& point) const = 0;
  virtual void keep(const CurvePoint& point, double seconds) = 0;
  /// And for the paces that two operations keep while both send.
  [[nodiscard]] virtual std::optional<KeptPaces> find(const CurveKey& one, const CurveKey& other) const = 0;
  virtual void keep(const CurveKey& one, const CurveKey& other, const KeptPaces& paces) = 0;
};

/// Fabrics and stores that simulators share; safe to use from the threads that they run on.
class SharedNetworks {
 public:
  virtual ~SharedNetworks() = default;
  struct Network {
    std::shared_ptr<const Fabric> fabric;
    std::shared_ptr<CurveStore> curves;
  };
  /// Returns the same objects for the same arguments, unless these have been forgotten meanwhile.
  virtual Network network_for(const FabricSpec& fabric, const LinkShares& shares) = 0;
};

}  // namespace shardscape::network
