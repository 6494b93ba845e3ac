#include "engine/prediction_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace shardscape {

namespace {

constexpr double kLargest = 1e30;
constexpr double kShortest = 1e-30;

/// False for NaN, too, because every comparison with NaN is false.
bool holds(double value, double largest) { return std::abs(value) <= largest; }

bool hold(const auto& quantities) {
  return std::ranges::all_of(quantities, [](const auto& q) { return holds(q.value(), kLargest); });
}

}  // namespace

bool memory_in_range(const Prediction& p) {
  const MemoryUse& m = p.memory;
  return hold(std::array{m.weights, m.gradients, m.optimizer, m.activations, m.logits, m.kv_cache, m.buffers,
                         m.reserve, p.memory_peak, p.prefill_memory_peak, p.kv_bytes});
}

bool in_range(const Prediction& p, Phase phase) {
  const bool training = phase == Phase::training;
  const double whole = p.whole(phase).value();
  const bool rates = holds(p.tokens_per_s_per_gpu, std::numeric_limits<double>::max()) &&
                     holds(p.mfu, std::numeric_limits<double>::max()) && holds(p.decode_batch, kLargest);
  const LoadPrediction& l = p.load;
  const bool served =
      training ||
      (hold(std::array{l.ttft.p90, l.ttft.p99, l.itl.p90, l.itl.p99, l.tpot.p90, l.tpot.p99, l.e2e.p90,
                       l.e2e.p99, l.tpot_mean, l.tpot_spread.p50, l.tpot_spread.p95, l.queue}) &&
       !l.unsteady && holds(l.requests_per_s, kLargest) && holds(l.kv_mean, kLargest) &&
       holds(l.kv_peak, kLargest) && holds(l.accepted_tokens, kLargest) &&
       holds(l.sustained_per_s, kLargest) && holds(l.attainment, kLargest));
  const bool latencies = training || hold(std::array{p.ttft, p.itl, p.e2e, p.ttft_spread.p50,
                                                     p.ttft_spread.p95, p.itl_spread.p50, p.itl_spread.p95,
                                                     p.e2e_spread.p50, p.e2e_spread.p95, p.kv_transfer});
  return whole >= kShortest && whole <= kLargest && rates && latencies && served && hold(p.breakdown) &&
         memory_in_range(p);
}

void reject_range(Prediction& prediction) {
  const std::int32_t microbatches = prediction.microbatches;
  const bool unsteady = prediction.load.unsteady;
  prediction = Prediction();
  prediction.status = Status::out_of_range;
  prediction.reason = unsteady ? Reason::no_steady_state : Reason::out_of_range;
  prediction.microbatches = microbatches;
}

}  // namespace shardscape
