// A training step by execution: every operator and message of every rank in one course of events. Fills the
// same fields as time_training(); the breakdown is that of the rank that ends last.
#pragma once

#include <memory>
#include <string>

#include "engine/execution/executor.h"
#include "engine/network/priced_network.h"
#include "engine/step/price_training.h"

namespace shardscape::step {

/// What execution needs beside the inputs of the hierarchical passes; scratch that outlives a point.
struct FlattenedRun {
  network::PricedNetwork& network;  ///< set to the faults
  std::span<const std::int32_t> placement;
  execution::Executor& executor;
  execution::Fold fold = execution::Fold::when_it_pays;
  bool want_programs = false, want_timeline = false;         ///< fill the fields below
  std::int64_t events = 0, messages = 0, operators = 0;      ///< out
  std::int32_t executed_ranks = 0;                           ///< out: of the last execution
  std::shared_ptr<const execution::Programs> programs = {};  ///< out: what was executed
  std::string timeline = {};                                 ///< out: see engine/timeline/program_timeline.h
  bool unreachable = false;   ///< out: dead links cut ranks off that have to talk
  std::string deadlock = {};  ///< out: why ranks wait for each other, where they do; there is no time then
};

/// Returns the critical stage. Where dead links cut a group off, collectives.unreachable() says so afterwards
/// and nothing is executed. Where ranks come to wait for each other, run.deadlock says so.
std::int32_t execute_training(const TrainingStep& inputs, network::CollectiveModel& collectives,
                              FlattenedRun& run, Prediction& prediction);

}  // namespace shardscape::step
