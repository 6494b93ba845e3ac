// A training step as it was priced: what every stage runs for a microbatch, in order, and what comes before and after.
// Timelines, charts and traces are made from it after the point has been evaluated.
//
// It is the step graph of engine/step, written out node by node (export_training.h), each with the time that the
// prediction was made of. It holds no rule and no price of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/work.h"
#include "engine/network/collectives/patterns.h"
#include "engine/schedule/pipeline.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/plan.h"
#include "engine/timeline/execution_trace.h"
#include "engine/timeline/pipeline_trace.h"

namespace shardscape::timeline {

enum class StepKind : std::uint8_t {
  compute,
  collective,
  ring_pass,  ///< every member sends to its successor
  exchange,   ///< every member sends a part to every other one
  wait        ///< the device is idle until the host has launched its work
};

/// One thing that a rank does after the step before it.
struct ProgramStep {
  StepKind kind = StepKind::compute;
  std::string name;
  double seconds = 0;  ///< predicted seconds of all repeats together
  Work work = {};      ///< work of a compute step
  double hidden = 0;   ///< communication: the seconds that run under the compute step before it
  std::string bound;   ///< compute: what limits it, such as compute, sram, l2, hbm
  CollectiveKind collective = CollectiveKind::all_reduce;
  ParallelGroup group = ParallelGroup::tensor;
  double bytes = 0;          ///< bytes that one rank puts in, per repeat
  std::int32_t repeats = 1;  ///< number of calls, one after the other
  network::Skew parts;       ///< exchange: the parts that it is cut into

  [[nodiscard]] double exposed() const { return seconds - hidden; }
};

/// Steps of one microbatch on one chunk of a stage.
struct ChunkSteps {
  std::vector<ProgramStep> forward;
  std::vector<ProgramStep> backward;  ///< zero_bubble: the input gradient
  std::vector<ProgramStep> weight;    ///< zero_bubble and dualpipe only
  std::vector<ProgramStep> input;     ///< dualpipe: a backward that is cut

  [[nodiscard]] const std::vector<ProgramStep>& of(const schedule::PipelineOperation& op) const {
    if (!op.backward) return forward;
    if (op.weight) return weight;
    return op.cut && !input.empty() ? input : backward;
  }
};

/// Gradient buckets that are sent together during the last microbatch's backward on a chunk (zero_bubble: during its
/// weight gradient).
struct BucketRelease {
  std::int32_t chunk = 0;
  double share = 0;  ///< share of the pass that is done then, 0..1
  std::int32_t buckets = 0;
};

/// The gradients of one group of parameters, once a step: some are sent as `releases` say, the rest after the backward.
struct GradientSteps {
  ProgramStep step;
  std::vector<BucketRelease> releases;
};

/// The steps of a stage. Data-parallel traffic has `repeats` calls of `bytes` each for each group of parameters.
struct StageSteps {
  std::vector<ChunkSteps> chunks;
  std::vector<ProgramStep> forward_gather;        ///< weights under ZeRO-3, beside each forward
  std::vector<ProgramStep> backward_gather;       ///< weights under ZeRO-3, beside each backward
  std::vector<ProgramStep> microbatch_gradients;  ///< beside each backward (zero_bubble: weight gradient)
  std::vector<GradientSteps> gradients;
  std::vector<ProgramStep> weights;  ///< updated weights, once, after the optimizer
  /// Weights that the step before updated: beside the first forward (dualpipe: of each chunk), and of each further chunk
  /// from the first forward of the chunk before to the end of its own.
  std::vector<ProgramStep> first_gather, next_gather;
  /// After the last backward: steps of the head's deferred weight gradient, for one microbatch.
  std::vector<ProgramStep> deferred;
  std::int32_t deferrals = 0;  ///< number of microbatches that they are repeated for
  /// Seconds before the optimizer that compute loses to traffic which goes once a step.
  double lost = 0;
  Work optimizer_work = {};
};

struct PricedStep {
  std::string title;
  ParallelPlan plan;
  schedule::PipelineShape shape;
  std::vector<StageSteps> stages;
  double boundary_bytes = 0;  ///< bytes that one rank sends to the next stage per microbatch
  /// If > 0, boundaries are sent in parts, and the receiver's tensor group gathers this many bytes.
  double boundary_gather_bytes = 0;
  double data_overlap = 0;  ///< share of a pass that can hide data-parallel traffic
  double step_fixed = 0;    ///< seconds of the host before everything else

  // The inputs with which the schedule was timed.
  std::vector<schedule::StageTime> times;
  schedule::Transfer transfer;
  std::vector<StageTailSpan> tails;  ///< per stage
};

}  // namespace shardscape::timeline
