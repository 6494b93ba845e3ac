// A training step by execution: every operator and message of every rank in one course of events. Fills the
// same fields as time_training(); the breakdown is that of the rank that ends last. The programs (emit_training.h) are
// also what timelines and traces are made from, with the schedule as it was priced.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "engine/execution/executor.h"
#include "engine/execution/program_builder.h"
#include "engine/network/prices/priced_network.h"
#include "engine/step/layers/training_step.h"
#include "engine/step/training/step_times.h"
#include "engine/timeline/timed_step.h"

namespace shardscape::step {

/// What execution needs besides the inputs of the hierarchical passes, and its results. Its scratch outlives a point.
struct FlattenedRun {
  network::PricedNetwork& network;  ///< with the faults set
  std::span<const std::int32_t> placement;
  execution::Executor& executor;
  execution::Fold fold = execution::Fold::when_it_pays;
  /// An execution of more events than this, those of all ranks counted, is not begun, and the step takes for ever.
  std::int64_t most_planned = std::numeric_limits<std::int64_t>::max();
  bool want_programs = false, want_timeline = false;     ///< in: whether to fill `programs`, `timeline`
  std::int64_t events = 0, messages = 0, operators = 0;  ///< out
  /// Out: number of ranks executed, in the last execution.
  std::int32_t executed_ranks = 0;
  std::shared_ptr<const execution::Programs> programs = {};  ///< out: the executed programs
  /// Out: JSON, see engine/timeline/program_timeline.h.
  std::string timeline = {};
  bool unreachable = false;  ///< out: dead links cut ranks off that have to talk
  /// Out: why ranks wait for each other in a circle, in which case there is no time; empty: they do not.
  std::string deadlock = {};

  [[nodiscard]] execution::ProgramBuilder builder(const Setting& setting,
                                                  const network::CollectivePrices& collectives) const {
    return {network, setting.system.stack.communication, collectives, placement};
  }
  /// Executes programs, and counts what they did unless the execution was given up. Null where ranks wait for each
  /// other, which `deadlock` tells; else valid until the next execution.
  const execution::ExecutionResult* execute(const execution::Programs& all);
};

/// Returns the critical stage. Where dead links cut a group off, collectives.unreachable() says so afterwards
/// and nothing is executed. Where ranks come to wait for each other, run.deadlock says so.
std::int32_t execute_training(const TrainingStep& inputs, const network::CollectivePrices& collectives,
                              FlattenedRun& run, Prediction& prediction);

/// The schedule with the times of all stages (TrainingScratch::options).
timeline::TimedStep timed_step(const TrainingStep& inputs, const StepTimes& times);

/// The programs of all ranks, not executed; null where dead links cut off ranks that have to talk. `drawn`, where
/// given, gets the timeline of the step with the operators of one rank of each stage.
std::shared_ptr<const execution::Programs> emit_step(const TrainingStep& inputs,
                                                     const network::CollectivePrices& collectives,
                                                     const FlattenedRun& run, const timeline::TimedStep& step,
                                                     std::string* drawn);

}  // namespace shardscape::step
