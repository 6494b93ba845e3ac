// What a reader of a single point wants beyond its prediction.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/spec/group_bytes.h"
#include "engine/spec/load_mix.h"
#include "engine/spec/prediction.h"

namespace shardscape {

namespace timeline {
struct TimedStep;
}  // namespace timeline
namespace execution {
struct Programs;
}  // namespace execution

/// Further results that only a reader of a single point wants; never filled in a sweep.
struct Details {
  /// The pool that prefills, in disaggregated inference; everything else here then describes the decoding pool.
  struct PrefillDetails {
    std::vector<MemoryUse> stage_memory;
    std::vector<std::int32_t> stage_layers;
  };
  PrefillDetails prefill;
  std::vector<MemoryUse> stage_memory;  ///< index: pipeline stage
  /// Of a rank that decodes and holds nothing but experts (ParallelPlan::ffn); empty where there is none.
  std::vector<MemoryUse> expert_memory;
  std::vector<std::int32_t> stage_layers;
  /// Index: pipeline stage; time of one microbatch over all chunks of the stage.
  std::vector<Seconds> stage_forward, stage_backward;
  std::vector<OperatorRow> operators;
  GroupBytes group_bytes;
  /// Where the point is unreachable: which ranks are cut off, and the dead links between them.
  std::string cut;
  std::int64_t events = 0;  ///< flattened mode: operators, calls entered, messages drained and received
  std::int32_t executed_ranks =
      /// Flattened training: number of ranks executed to stand for all of them (execution/folding.h).
      0;
  bool want_load_mixes = false;  ///< set by the caller to have `load_mixes` filled
  LoadMixes load_mixes;          ///< of a simulated load
  bool want_timeline = false;    ///< set by the caller to have `timeline` filled
  std::string
      timeline;  ///< Chrome trace of a training step, or of a simulated load, as JSON (see engine/timeline)
  bool want_schedule = false;                           ///< set by the caller to have `schedule` filled
  std::shared_ptr<const timeline::TimedStep> schedule;  ///< of a training step, for charts
  bool want_programs = false;                           ///< set by the caller to have `programs` filled
  /// The programs of every rank of a training step: those that flattened mode executes, in either mode.
  std::shared_ptr<const execution::Programs> programs;
};

}  // namespace shardscape
