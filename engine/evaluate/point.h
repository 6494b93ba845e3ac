// One design point on its way through the passes: each fills its part and reads what those before it filled.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/model/partition.h"
#include "engine/prediction.h"
#include "engine/step/pools.h"
#include "engine/step/price_training.h"

namespace shardscape::evaluate {

struct Point {
  ParallelPlan plan;
  Prediction out;
  Details* details = nullptr;  ///< filled where given

  // partition()
  std::shared_ptr<const model::Partition> split;  ///< layers over stages; of pools, of the one that decodes
  // memory()
  schedule::PipelineShape pipeline;  ///< training
  step::ServingShape serving;        ///< replicas that prefill and decode
  step::PoolInputs prefill, decode;  ///< pools
  // find_sick()
  std::vector<step::SickStage> sick;
  // time()
  bool unreachable = false;  ///< dead links cut off ranks that have to talk
  bool deadlocked = false;   ///< ranks wait for each other

  /// As new, for another plan. What memory() replaces as a whole stays until then.
  void restart(const ParallelPlan& next, Details* wanted) {
    plan = next;
    out = Prediction();
    details = wanted;
    split.reset();
    sick.clear();
    unreachable = deadlocked = false;
  }
  /// The fullest stage decides about the memory of a plan.
  void keep_peak(const MemoryUse& use, std::int32_t stage) {
    if (stage > 0 && use.total() <= out.memory_peak) return;
    out.memory = use;
    out.memory_peak = use.total();
    out.peak_stage = stage;
  }
  /// Dead links cut ranks off; `collectives` may know which.
  void cut_off(network::CollectiveModel& collectives) {
    unreachable = true;
    if (details != nullptr && collectives.unreachable()) details->cut = collectives.describe_unreachable();
  }
  /// Ranks wait for each other, as `why` says: the machine would hang.
  void stand_still(const std::string& why) {
    deadlocked = true;
    if (details != nullptr) details->cut = "deadlock: " + why;
  }
};

/// Blocks of each stage.
inline std::vector<std::int32_t> block_counts(const std::vector<model::StageLayers>& layers) {
  std::vector<std::int32_t> counts;
  for (const model::StageLayers& stage : layers) counts.push_back(stage.count());
  return counts;
}

}  // namespace shardscape::evaluate
