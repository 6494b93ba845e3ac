// Executed steps that a search knows, so that none is executed twice.
//
// Of settings that differ in the capacity of their memory alone, and of ZeRO stages that send the same at the same
// time (1 and 2, where gradients are reduced with the last microbatch), executions are one: what a point has of its own
// is its verdict and its memory. Executions are dear, some tenths of a second to minutes each: who asks for one says
// until when it is worth it, and of one that was given up what is known is how long it takes at least.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/spec/plan.h"
#include "engine/spec/prediction.h"
#include "engine/spec/stack.h"
#include "engine/step_watch.h"

namespace shardscape::sweep {

/// The plan that stands for all plans with the same execution.
ParallelPlan executed_plan(ParallelPlan plan, const StackProfile& stack);

/// Remembers executions; any number of threads may use one object.
class ExecutedSteps {
 public:
  /// The result of executing the plan, an executed_plan(), in this group of settings; nothing where `watch` gave it up.
  /// Calls `execute` with the watch to execute under, and calls it again only if the execution was given up before and
  /// `watch` allows a longer one.
  std::optional<Prediction> of(std::size_t group, const ParallelPlan& plan, const StepWatch& watch,
                               const std::function<Prediction(const StepWatch&)>& execute);

  /// The prediction of a point: its own verdict and memory, with the times of an execution.
  static Prediction with_times(Prediction own, const Prediction& executed);

 private:
  struct Entry {
    std::size_t group = 0;
    ParallelPlan plan;
    std::mutex executing;  ///< guards the fields below
    Seconds at_least;
    bool whole = false;  ///< executed to the end
    Prediction prediction;
  };
  Entry& entry(std::size_t group, const ParallelPlan& plan);

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<Entry>>>
      known_;  ///< by a hash of group and plan
};

}  // namespace shardscape::sweep
