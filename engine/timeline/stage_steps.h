// A training step as it was priced: what every stage runs for a microbatch, in order, and what frames it. Drawn,
// charted and exported here, after the point has been evaluated.
//
// It is engine/step's graph read out (export_training.h): its nodes one by one, each with the time that the
// prediction was made of. It holds no rule and no price of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/work.h"
#include "engine/network/patterns.h"
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
  wait        ///< the device waits for the host
};

/// One thing that a rank does, after the one before it.
struct ProgramStep {
  StepKind kind = StepKind::compute;
  std::string name;
  double seconds = 0;  ///< as predicted, of all repeats
  Work work = {};      ///< of compute
  double hidden = 0;   ///< of communication: the part that runs under the compute step before it
  std::string bound;   ///< of compute: compute, sram, l2, hbm, ...
  CollectiveKind collective = CollectiveKind::all_reduce;
  ParallelGroup group = ParallelGroup::tensor;
  double bytes = 0;          ///< what one rank puts in, of one repeat
  std::int32_t repeats = 1;  ///< one after the other
  network::Skew parts;       ///< of an exchange

  [[nodiscard]] double exposed() const { return seconds - hidden; }
};

/// One chunk of a stage, one microbatch.
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

/// Buckets that leave together within the last microbatch's backward on a chunk (zero_bubble: within its
/// weight gradient).
struct BucketRelease {
  std::int32_t chunk = 0;
  double share = 0;  ///< of the pass that is done, 0..1
  std::int32_t buckets = 0;
};

/// The gradients of one group of parameters, once: as `releases` say, the rest after the backward.
struct GradientSteps {
  ProgramStep step;
  std::vector<BucketRelease> releases;
};

/// Traffic of data parallelism, for each group of parameters in `repeats` calls of `bytes` each.
struct StageSteps {
  std::vector<ChunkSteps> chunks;
  std::vector<ProgramStep> forward_gather;        ///< weights under ZeRO-3, beside each forward
  std::vector<ProgramStep> backward_gather;       ///< likewise, beside each backward
  std::vector<ProgramStep> microbatch_gradients;  ///< beside each backward (zero_bubble: weight gradient)
  std::vector<GradientSteps> gradients;
  std::vector<ProgramStep> weights;       ///< once, after the optimizer
  std::vector<ProgramStep> first_gather;  ///< weights of the step before, beside the first forward
  std::vector<ProgramStep> deferred;  ///< after the last backward: the head's weight gradient of a microbatch
  std::int32_t deferrals = 0;         ///< of so many microbatches
  double lost = 0;                    ///< by compute to traffic once a step, in seconds before the optimizer
  Work optimizer_work = {};
};

struct PricedStep {
  std::string title;
  ParallelPlan plan;
  schedule::PipelineShape shape;
  std::vector<StageSteps> stages;
  double boundary_bytes = 0;         ///< that one rank sends to the next stage per microbatch
  double boundary_gather_bytes = 0;  ///< if > 0 the receiver's tensor group gathers parts of these bytes
  double data_overlap = 0;           ///< share of a pass that can hide data-parallel traffic
  double step_fixed = 0;             ///< seconds of the host before everything else

  // What the schedule was timed with.
  std::vector<schedule::StageTime> times;
  schedule::Transfer transfer;
  std::vector<StageTailSpan> tails;  ///< per stage
};

}  // namespace shardscape::timeline
