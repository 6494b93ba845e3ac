// Cost curves, and how operations slow each other, that outlive the model which made them, and fabrics that outlive
// their simulator: threads, and settings of a study that differ in devices, models or workloads, send over the same
// links, and what groups of ranks take on them is the same. The engine asks; who keeps them, and for which threads, is
// the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "engine/network/collective_model.h"
#include "engine/network/cost_curve.h"
#include "engine/network/fabric.h"
#include "engine/network/priced_network.h"
#include "engine/network/rank_group.h"

namespace shardscape::network {

/// All that a curve, and the loads of links, depend on beside the fabric and the shares of its links, where every link is healthy, every rank at
/// its own number and every member sends as much as the others.
struct CurveKey {
  CollectiveOp op = CollectiveOp::all_reduce;
  CollectiveChoice choice;
  RankGroup group;
  std::int32_t boundary = -1;  ///< >= 0: only between this member of each group and the next
  RankGroup::Level slice;      ///< groups of the first slice along this axis; of extent 1: all
  /// Of rings over channels, in whose latencies the stack's steps are; else 0.
  Seconds rank_step = {}, rank_step_scale_out = {};
  friend bool operator==(const CurveKey&, const CurveKey&) = default;
};

struct CurveKeyHash {
  std::size_t operator()(const CurveKey& key) const;
};

/// Of one fabric at one set of shares. Holds what it is given for good; that is the same whoever makes it.
class CurveStore {
 public:
  virtual ~CurveStore() = default;
  /// Nothing where it is not kept.
  [[nodiscard]] virtual std::optional<CostCurve> find(const CurveKey& key) const = 0;
  /// Does nothing where it is kept already.
  virtual void keep(const CurveKey& key, const CostCurve& curve) = 0;
  /// The same of the paces of two operations that send together.
  [[nodiscard]] virtual std::optional<KeptPaces> find(const CurveKey& one, const CurveKey& other) const = 0;
  virtual void keep(const CurveKey& one, const CurveKey& other, const KeptPaces& paces) = 0;
};

/// What simulators have in common; safe to use from the threads that they run on.
class SharedNetworks {
 public:
  virtual ~SharedNetworks() = default;
  struct Network {
    std::shared_ptr<const Fabric> fabric;
    std::shared_ptr<CurveStore> curves;
  };
  /// The same for the same arguments, unless it was forgotten meanwhile.
  virtual Network of(const FabricSpec& fabric, const LinkShares& shares) = 0;
};

}  // namespace shardscape::network
