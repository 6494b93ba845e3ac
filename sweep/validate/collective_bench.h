// Prices collectives that run alone on a machine, as in their benchmarks.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/network/prices/collective_prices.h"
#include "sweep/validate/predict_plans.h"
#include "sweep/validate/presets.h"

namespace shardscape::validate {

/// A group of ranks on a machine. A group within a node has a node of its size to itself; a group across nodes shares
/// these with its sibling groups, which use other adapters.
struct BenchGroup {
  std::string cluster, stack;  ///< names of presets, or paths
  std::int64_t gpus = 0;       ///< number of ranks in the group
  std::int64_t per_node = 0;   ///< ranks of the group in each node; divides `gpus`
  friend auto operator<=>(const BenchGroup&, const BenchGroup&) = default;
};

/// Prices collectives; builds each machine once.
class CollectiveBenches {
 public:
  /// `presets` must outlive the object. `folder`: where relative paths of presets start.
  CollectiveBenches(Presets& presets, std::filesystem::path folder);
  ~CollectiveBenches();
  CollectiveBenches(const CollectiveBenches&) = delete;
  CollectiveBenches& operator=(const CollectiveBenches&) = delete;

  /// Seconds of one call with `bytes` (counted for the operation as in CollectiveKey), or what is wrong with
  /// the group.
  tl::expected<double, std::vector<RowRefusal>> time(const BenchGroup& group, network::CollectiveOp operation,
                                                     double bytes);

 private:
  class Bench;
  tl::expected<std::unique_ptr<Bench>, std::vector<RowRefusal>> make(const BenchGroup& group);

  Presets& presets_;
  std::filesystem::path folder_;
  std::map<BenchGroup, std::unique_ptr<Bench>> benches_;
};

}  // namespace shardscape::validate
