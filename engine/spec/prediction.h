// What the engine predicts for one design point.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "engine/base/quantity.h"
#include "engine/spec/time_class.h"
#include "engine/spec/verdict.h"

namespace shardscape {

/// Bytes by kind on one device at the moment of its peak.
struct MemoryUse {
  Bytes weights, gradients, optimizer, activations, logits, kv_cache, buffers, reserve;
  [[nodiscard]] Bytes total() const {
    return weights + gradients + optimizer + activations + logits + kv_cache + buffers + reserve;
  }
};

/// Contended share of a step beyond which execution may differ by more than 5 %: most plans within it do not,
/// half of those beyond it do (step/training/contention.h).
constexpr double kDomainBand = 0.03;

/// Percentiles by nearest rank, over tokens (ITL) or over requests.
struct InferenceLatency {
  Seconds p50, p95;
};

/// The further figures of a load that is simulated request by request (spec/request_load.h); zeros for other loads.
struct LoadPrediction {
  struct Tail {
    Seconds p90, p99;
  };
  Tail ttft, itl, tpot, e2e;
  Seconds tpot_mean;             ///< time per output token after the first, mean over requests
  InferenceLatency tpot_spread;  ///< over requests
  Seconds queue;                 ///< mean, from sending a request until its prompt is first read
  double requests_per_s = 0;
  double kv_mean = 0, kv_peak = 0;  ///< share of the key-value cache in use (engine/serving/live/tally.h)
  double preemptions = 0;           ///< per request
  /// Share of the requests that keep LoadSpec::promised, each by its own latencies.
  double attainment = 0;
  /// Share of the tokens of prompts that were found in the cache: on the device, the host, a disk.
  std::array<double, 3> prefix_hits{};
  double accepted_tokens = 0;  ///< tokens that a decode iteration gives a sequence; 0 where none decodes
  double sustained_per_s = 0;  ///< where requests come faster than they are served: the rate that would hold
  double done = 0;             ///< share of the requests that count which are done: the rest may never be
  /// The requests that count were to show servers in steady state, and do not: no figure here is a result.
  bool unsteady = false;
};

/// The time of one training step, or of a decode iteration, and what follows from it.
struct StepPrediction {
  Seconds step_time;
  double tokens_per_s_per_gpu = 0;
  double mfu = 0;  ///< model FLOPs utilisation, 0..1 (training only; see engine/README.md, Operators)
  Breakdown breakdown;
  /// Training, hierarchical mode: the part of the step that operations on the same links cost each other, less what
  /// groups of different pipeline stages spare each other as they take turns, and those of one stage as they come apart
  /// (step/training/contention.h); negative where that is more; 0 where the step is executed. The step less this part
  /// is monotone in every number of device, fabric and stack; the step itself, predicted or executed, is not.
  Seconds contention;
  /// Training, hierarchical mode: share of the step by which contention that this mode cannot see may move it
  /// (step/training/contention.h).
  double contended_share = 0;
  [[nodiscard]] bool outside_domain() const { return contended_share > kDomainBand; }
};

/// Outputs of one point. Times are meaningful for status ok and memory (predicted whatever the memory
/// verdict, when asked), memory for every status but indivisible, constraint, unsupported and out_of_range.
struct Prediction : StepPrediction {
  Status status = Status::ok;
  Reason reason = Reason::none;
  std::int32_t microbatches = 0;  ///< microbatches per step and replica (training)
  std::int32_t peak_stage = 0;    ///< pipeline stage of the device with the highest peak
  Seconds ttft, itl, e2e;  ///< inference only, means: time to first token, inter-token latency, whole request
  InferenceLatency ttft_spread, itl_spread, e2e_spread;
  LoadPrediction load;
  double decode_batch = 0;  ///< inference only: sequences decoded together, mean over iterations that decode
  Bytes memory_peak;
  MemoryUse memory;  ///< bytes on the fullest device
  // The next figures are for disaggregated inference only.
  Bytes kv_bytes;                ///< size of one request's cache, as sent from pool to pool
  Seconds kv_transfer;           ///< mean, from the start of the first byte to the receipt of the last
  Bytes prefill_memory_peak;     ///< bytes on the fullest device of the pool that prefills
  bool peak_in_prefill = false;  ///< whether memory_peak is of that pool
  /// Joules per token of devices that draw their power limit all the time, and money per million tokens at the devices'
  /// price; NaN where the device says none (token_prices.h).
  double joules_per_token = std::numeric_limits<double>::quiet_NaN();
  double cost_per_million_tokens = std::numeric_limits<double>::quiet_NaN();

  [[nodiscard]] bool has_times() const { return status == Status::ok || status == Status::memory; }
  /// The time of the whole: of a training step, or of a request.
  [[nodiscard]] Seconds whole(Phase phase) const { return phase == Phase::training ? step_time : e2e; }
};

/// One row of the operator table of `simulate --explain`.
struct OperatorRow {
  std::string phase;      ///< one of forward, backward, recompute, prefill, decode, step
  std::string name;       ///< name of the operator, such as qkv_projection or attention
  std::string shape;      ///< "M x N x K", bytes, ...
  double count = 0;       ///< executions on the critical rank per step (per request for inference)
  Seconds time;           ///< seconds of one execution
  std::string bound;      ///< resource that limits it: compute, sram, l2, hbm, launch or link
  std::string algorithm;  ///< algorithm of a collective: ring, dimension_wise, ...; empty for others
  /// `batch` products of m x k by k x n; zeros for all else.
  struct Product {
    double batch = 0, m = 0, n = 0, k = 0;
  } product = {};
};

}  // namespace shardscape
