// Cost curves that outlive the model which made them: settings of a study that differ in devices, models or workloads
// only have the same links, and the curves of their groups are the same.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "engine/network/collective_model.h"
#include "engine/network/cost_curve.h"
#include "engine/network/rank_group.h"

namespace shardscape::network {

/// Of one fabric and the shares of its links that one stack achieves, healthy, every rank at its own number. Holds
/// curves that need no simulation: the others refer to the network of their model.
class CurveStore {
 public:
  struct Key {
    CollectiveOp op = CollectiveOp::all_reduce;
    CollectiveChoice choice;
    RankGroup group;
    std::int32_t boundary = -1;  ///< as OpCosts::boundary
    RankGroup::Level slice;      ///< groups of the first slice along this axis; of extent 1: all
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Null where it is not kept; valid until the next keep().
  [[nodiscard]] const CostCurve* find(const Key& key) const;
  void keep(const Key& key, const CostCurve& curve);

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, CostCurve, Hash> curves_;
};

}  // namespace shardscape::network
