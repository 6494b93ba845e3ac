// Collectives alone on a machine, as their benchmarks run them.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/network/collective_model.h"
#include "sweep/validate/predict_plans.h"
#include "sweep/validate/presets.h"

namespace shardscape::validate {

/// One group of ranks on one machine. A group inside a node has a node of its size to itself; one across nodes
/// shares them with its siblings, which use adapters of their own.
struct BenchGroup {
  std::string cluster, stack;  ///< presets or paths that can be read
  std::int64_t gpus = 0;       ///< ranks of the group
  std::int64_t per_node = 0;   ///< of them in one node; divides `gpus`
  friend auto operator<=>(const BenchGroup&, const BenchGroup&) = default;
};

/// Prices of collectives; machines are built once.
class CollectiveBenches {
 public:
  /// `presets` outlives it. `folder`: where relative paths of presets start.
  CollectiveBenches(Presets& presets, std::filesystem::path folder);
  ~CollectiveBenches();
  CollectiveBenches(const CollectiveBenches&) = delete;
  CollectiveBenches& operator=(const CollectiveBenches&) = delete;

  /// Seconds of one call on `bytes` (as CollectiveModel::time() counts them for the operation), or what is
  /// wrong with the group.
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
