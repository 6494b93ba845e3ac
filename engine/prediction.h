// What the engine predicts for one design point.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/spec/group_bytes.h"
#include "engine/spec/time_class.h"
#include "engine/spec/verdict.h"

namespace shardscape {

namespace timeline {
struct PricedStep;
}  // namespace timeline
namespace execution {
struct Programs;
}  // namespace execution

/// Bytes by kind on one device at the moment of its peak.
struct MemoryUse {
  Bytes weights, gradients, optimizer, activations, logits, kv_cache, buffers, reserve;
  [[nodiscard]] Bytes total() const {
    return weights + gradients + optimizer + activations + logits + kv_cache + buffers + reserve;
  }
};

/// Contended share of a step beyond which execution may differ by more than 5 %: most plans within it do not,
/// half of those beyond it do (step/contention.h).
constexpr double kDomainBand = 0.03;

/// Percentiles by nearest rank, over tokens (ITL) or over requests.
struct InferenceLatency {
  Seconds p50, p95;
};

/// Outputs of one point. Times are meaningful for status ok and memory (predicted whatever the memory
/// verdict, when asked), memory for every status but indivisible, constraint, unsupported and out_of_range.
struct Prediction {
  Status status = Status::ok;
  Reason reason = Reason::none;
  std::int32_t microbatches = 0;  ///< microbatches per step and replica (training)
  std::int32_t peak_stage = 0;    ///< pipeline stage of the device with the highest peak
  Seconds step_time;              ///< training only
  Seconds ttft, itl, e2e;  ///< inference only, means: time to first token, inter-token latency, whole request
  InferenceLatency ttft_spread, itl_spread, e2e_spread;
  double decode_batch = 0;  ///< inference only: sequences decoded together, mean over iterations that decode
  double tokens_per_s_per_gpu = 0;
  double mfu = 0;  ///< model FLOPs utilisation, 0..1 (training only; see engine/README.md, Operators)
  Bytes memory_peak;
  MemoryUse memory;  ///< on the fullest device
  // The next figures are for disaggregated inference only.
  Bytes kv_bytes;             ///< size of one request's cache, as sent from pool to pool
  Seconds kv_transfer;        ///< mean, from the start of the first byte to the receipt of the last
  Bytes prefill_memory_peak;  ///< on the fullest device of the pool that prefills
  Breakdown breakdown;
  /// Training, hierarchical mode: of the step, what operations on the same links cost each other, less what groups of
  /// other pipeline stages spare each other as they take turns (step/contention.h); negative where that is more. What is
  /// left of the step follows every number of device, fabric and stack; with it no step does, executed or not.
  Seconds contention;
  /// Training, hierarchical mode: share of the step by which contention that this mode cannot see may move it
  /// (step/contention.h).
  double contended_share = 0;
  [[nodiscard]] bool outside_domain() const { return contended_share > kDomainBand; }
};

/// One row of the operator table of `simulate --explain`.
struct OperatorRow {
  std::string phase;      ///< one of forward, backward, recompute, prefill, decode, step
  std::string name;       ///< such as qkv_projection, attention
  std::string shape;      ///< "M x N x K", bytes, ...
  double count = 0;       ///< executions on the critical rank per step (per request for inference)
  Seconds time;           ///< of one execution, seconds
  std::string bound;      ///< what limits it: compute, sram, l2, hbm, launch or link
  std::string algorithm;  ///< of a collective: ring, dimension_wise, ...; empty for others
};

/// Further results that only a reader of a single point wants; never filled in a sweep.
struct Details {
  /// The pool that prefills, in disaggregated inference; everything else here then describes the decoding pool.
  struct PrefillDetails {
    std::vector<MemoryUse> stage_memory;
    std::vector<std::int32_t> stage_layers;
  };
  PrefillDetails prefill;
  std::vector<MemoryUse> stage_memory;  ///< index: pipeline stage
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
  bool want_timeline = false;  ///< set by the caller to have `timeline` filled
  std::string timeline;        ///< Chrome trace of a training step as JSON (see engine/timeline)
  bool want_program = false;   ///< set by the caller to have `program` and `executed` filled
  std::shared_ptr<const timeline::PricedStep> program;  ///< a training step, for charts and traces
  /// The programs of every rank, in flattened mode only.
  std::shared_ptr<const execution::Programs> executed;
};

}  // namespace shardscape
