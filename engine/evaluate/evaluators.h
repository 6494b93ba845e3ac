// How one kind of work is evaluated: training, serving by replicas, serving by pools. simulate.cc says in
// which order the passes run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/details.h"
#include "engine/evaluate/machine.h"
#include "engine/model/partition.h"
#include "engine/step/layers/training_step.h"
#include "engine/step/serving/pools.h"

namespace shardscape::evaluate {

/// One design point on its way through the passes: each fills its part and reads what those before it filled.
struct Point {
  ParallelPlan plan;
  Prediction out;
  Details* details = nullptr;  ///< filled where given

  // Written by partition().
  /// Layers over stages; with pools, those of the pool that decodes.
  std::shared_ptr<const model::Partition> split;
  // Written by memory().
  schedule::PipelineShape pipeline;  ///< set in training
  step::ServingShape serving;        ///< set for servers whose replicas both prefill and decode
  step::PoolInputs prefill, decode;  ///< set for servers with a pool for each
  std::optional<Bytes> capacity;     ///< of the fullest device, where that is of the pool that prefills
  // Written by find_sick().
  std::vector<step::SickStage> sick;
  // Written by time().
  bool executed = false;     ///< training: `out` is of an execution
  Prediction priced;         ///< where it is executed: what it was priced as, from which faults start
  bool unreachable = false;  ///< dead links cut off ranks that have to talk
  bool deadlocked = false;   ///< ranks wait for each other in a circle

  /// Resets the point for another plan, except for what memory() overwrites as a whole.
  void restart(const ParallelPlan& next, Details* wanted) {
    plan = next;
    out = Prediction();
    details = wanted;
    split.reset();
    sick.clear();
    capacity.reset();
    executed = unreachable = deadlocked = false;
  }
  /// The bytes that the fullest device has; `otherwise` but for that of the pool that prefills.
  [[nodiscard]] Bytes capacity_or(Bytes otherwise) const { return capacity.value_or(otherwise); }
  /// The prediction by prices, which steps under faults start from.
  [[nodiscard]] const Prediction& by_prices() const { return executed ? priced : out; }
  /// Keeps the memory of the fullest stage, which decides about a plan. Stage 0 must come first.
  void keep_peak(const MemoryUse& use, std::int32_t stage) {
    if (stage > 0 && use.total() <= out.memory_peak) return;
    out.memory = use;
    out.memory_peak = use.total();
    out.peak_stage = stage;
  }
  /// Notes that dead links cut ranks off; `collectives` may know which.
  void cut_off(const network::CollectivePrices& collectives) {
    unreachable = true;
    if (details != nullptr && collectives.unreachable()) details->cut = collectives.describe_unreachable();
  }
  /// Notes that ranks wait for each other, as `why` says: the real machine would hang.
  void stand_still(const std::string& why) {
    deadlocked = true;
    if (details != nullptr) details->cut = "deadlock: " + why;
  }
};

/// Number of blocks of all kinds on each stage, from the layers of each stage.
inline std::vector<std::int32_t> block_counts(const std::vector<model::StageLayers>& layers) {
  std::vector<std::int32_t> counts;
  for (const model::StageLayers& stage : layers) counts.push_back(stage.count());
  return counts;
}

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// Splits the layers over the stages by the stack's rule; false where the rule cannot be met.
  virtual bool partition(Point& point) = 0;
  /// Finds the peak memory of every stage; the fullest decides.
  virtual void memory(Point& point) = 0;
  /// Finds the stages that hold a sick device of the machine's faults, and what their layers cost there.
  virtual void find_sick(Point& point) { point.sick.clear(); }
  /// Prices operators and collectives and times the pipeline or the server; calls cut_off() where dead links separate
  /// ranks. Writes only the prediction of the point, so that the point may be timed again under other faults.
  virtual void time(Point& point) = 0;

  /// Whether the links that a plan uses are recorded while it is priced.
  [[nodiscard]] virtual bool links_are_recorded() const = 0;
  /// Whether a sick device changes the prediction, wherever it is.
  [[nodiscard]] virtual bool minds_sick_devices() const { return false; }
  /// Forgets the results that neighbouring plans share.
  virtual void forget() = 0;
};

/// Each makes the evaluator of one kind of work. `machine` must outlive it.
std::unique_ptr<Evaluator> training_evaluator(Machine& machine);
std::unique_ptr<Evaluator> replica_evaluator(Machine& machine);
std::unique_ptr<Evaluator> pool_evaluator(Machine& machine);

}  // namespace shardscape::evaluate
