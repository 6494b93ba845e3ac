// Executed steps that a search knows, so that none is executed twice.
//
// Of settings that differ in the capacity of their memory alone, and of ZeRO stages that send the same at the same
// time (1 and 2, where gradients are reduced with the last microbatch), executions are one: what a point has of its own is
// its verdict and its memory. Executions are dear, some tenths of a second to minutes each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/prediction.h"
#include "engine/spec/plan.h"
#include "engine/spec/stack.h"

namespace shardscape::sweep {

/// The plan that stands for all whose executions are one.
ParallelPlan executed_plan(ParallelPlan plan, const StackProfile& stack);

/// Any number of threads may use one object.
class ExecutedSteps {
 public:
  /// What `execute` says of the plan, an executed_plan(), in this group of settings; it is called once for each.
  Prediction of(std::size_t group, const ParallelPlan& plan, const std::function<Prediction()>& execute);

  /// The prediction of a point: what is its own, with the times of an execution.
  static Prediction with_times(Prediction own, const Prediction& executed);

 private:
  struct Entry {
    ParallelPlan plan;
    std::once_flag once;
    Prediction prediction;
  };
  Entry& entry(std::size_t group, const ParallelPlan& plan);

  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::unique_ptr<Entry>>> known_;  ///< by group
};

}  // namespace shardscape::sweep
