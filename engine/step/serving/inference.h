// Latency and throughput of a replica under a steady load: continuous batching (engine/serving) with the
// engine's own costs of each iteration.
//
//   groups    a replica's requests are split into as many groups as there are pipeline stages, so that every
//             stage has one to work on; groups are alike and run in lock-step, each with iterations as long
//             as a trip through all stages, or as the busiest stage needs for one of every group. Where they
//             do not divide, the largest group is taken for all.
//   places    requests admitted at once: the stack's largest batch, or as many as the key-value cache holds
//             with their last token, in whole blocks. The cache is the stack's share of what weights,
//             activations and reserve leave on the fullest device.
//   coupled   Replicas that share experts (data-parallel attention) have iterations together. Each has its own
//             requests, as many as any other, and so does the same in each iteration; where they do not divide, the
//             one with most sets the pace and is taken for all. The experts work as if all replicas had as many
//             tokens, since dispatch pads to the longest.
//   outputs   TTFT, ITL, e2e (mean and percentiles) in the steady state; tokens per second = concurrency x
//             output tokens / e2e (Little's law); the breakdown is that of the mean request, `bubble` the
//             time in which nothing is done for it (waiting for its turn, decoding paused by others'
//             prompts).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/memory/memory.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/serving/live/load_record.h"
#include "engine/serving/server.h"
#include "engine/spec/group_bytes.h"
#include "engine/spec/prediction.h"
#include "engine/step/serving/draft_costs.h"
#include "engine/step/serving/executed_iterations.h"
#include "engine/step/serving/price_iterations.h"
#include "engine/step/training/operator_table.h"

namespace shardscape::step {

/// Shapes the serving from memory. `free`: bytes left on each stage without any cache; `request`: bytes of one
/// request's cache on each stage. One request is always admitted; where it does not fit, the memory it needs shows
/// that.
ServingShape serving_shape(const Setting& setting, const ParallelPlan& plan, const std::vector<Bytes>& free,
                           const std::vector<Bytes>& request);

/// Of a simulated load: gives the shape the tokens that the cache of a group holds, and as many requests in memory as
/// the longest one needs. `each`: tokens of the request whose bytes are given.
void size_cache(const Setting& setting, const std::vector<Bytes>& free, const std::vector<Bytes>& request,
                double each, ServingShape& shape);

/// The most requests in flight over all replicas; in an open loop as many as they may run at once.
std::int64_t requests_in_flight(const Setting& setting, const ParallelPlan& plan);

/// Tokens of a request's cache when its last token is written, in whole blocks; of requests of different lengths the
/// mean.
double cached_tokens(const Setting& setting);

/// A decode iteration of all sequences of a replica that run at once, each with half of its output done: it attends to
/// its prompt and so many tokens, its own latest one included.
serving::Iteration full_decode(const WorkloadSpec& workload, const ServingShape& shape);

/// How many requests' caches fit into the stack's share of what every stage has left; from 1 to the concurrency.
std::int64_t cache_places(const Setting& setting, const std::vector<Bytes>& free,
                          const std::vector<Bytes>& request);

/// The requests whose caches are counted at least where the cache, the stack's share of what is free, has to hold
/// `needed` of them: these, or, where they fit into all that is free and not into that share, as many as all that is
/// free must hold for the share to hold these.
std::int64_t least_resident(const Setting& setting, const std::vector<Bytes>& free,
                            const std::vector<Bytes>& request, double needed);

/// Rounds a number of cached tokens up to whole blocks.
double whole_blocks(const Setting& setting, std::int64_t tokens);

/// Keeps what plans of one setting share, also of settings that differ only in the concurrency. Never changes a result.
class InferenceMemo {
 public:
  TokenCosts& token_costs(const Setting& setting, const ParallelPlan& plan);
  /// The model that drafts in this setting.
  Draft& draft(const Setting& setting);
  /// The course of serving this load. The reference is valid until the next call.
  const serving::Trajectory& trajectory(const serving::Load& load, const serving::Rules& rules);
  void clear();

 private:
  /// Key: tensor, context, expert and expert tensor degree, redundant experts, ranks that hold experts alone.
  std::map<std::array<std::int32_t, 6>, TokenCosts> costs_;
  std::optional<Draft> draft_;
  /// Key: clients, slots, token budget.
  std::map<std::array<std::int64_t, 3>, serving::Trajectory> trajectories_;
  std::size_t segments_ = 0;  ///< in all trajectories together
};

/// The load and the rules of one replica.
serving::Load load_of(const InferenceInputs& inputs);
serving::Rules rules_of(const InferenceInputs& inputs);
/// The costs of a replica's iterations. `collectives` and `memo` must outlive the result.
IterationCosts iteration_costs(const InferenceInputs& inputs, const network::CollectivePrices& collectives,
                               InferenceMemo& memo, IterationCosts::Unit unit);

/// Makes a function from an iteration of a replica to its time: priced, or executed where `flattened` is given.
/// `plainly`: executed anew each time, nothing is remembered. All references must outlive the function.
serving::Timer iteration_timer(const InferenceInputs& inputs, const network::CollectivePrices& collectives,
                               InferenceMemo& memo, bool plainly, FlattenedRun* flattened);

/// Fills TTFT, ITL and e2e with their percentiles, the decode batch and the breakdown.
void fill_latencies(const serving::Measured& measured, Prediction& prediction);

/// How a load is timed: as fast as it goes; every iteration on its own; or not at all, but for its floors
/// (load_floor.h), which then stand for the latencies, for the requests per second of the run, and, as the rate that
/// holds, for that of a long run.
enum class LoadTiming : std::uint8_t { quick, plain, floors };

/// Fills ttft, itl, e2e, step_time (one decode iteration of a full batch of mean length), rates and
/// breakdown. `flattened`: by executed iterations (`plainly`: as in iteration_timer); nothing is filled where dead
/// links cut a group off. `observer`: of a simulated load.
void time_inference(const InferenceInputs& inputs, const network::CollectivePrices& collectives,
                    InferenceMemo& memo, LoadTiming how, Prediction& prediction,
                    FlattenedRun* flattened = nullptr, const serving::LoadObserver& observer = {});

/// Bytes that a rank sends in the iterations that serve the mean request. An iteration counts in full for each of the
/// requests that it serves, as it does in their time.
GroupBytes inference_bytes(const InferenceInputs& inputs, const network::CollectivePrices& collectives,
                           InferenceMemo& memo);

/// Consecutive iterations in which nothing changes but that every decoding sequence meets one token more each time.
struct WeightedIterations {
  serving::Iteration first;
  std::int64_t iterations = 1;
  double weight = 0;  ///< how often each of them occurs while the mean request is served
};
/// Appends the operator table of these iterations.
void explain_iterations(const InferenceInputs& inputs, const network::CollectivePrices& collectives,
                        InferenceMemo& memo, const std::vector<WeightedIterations>& iterations,
                        std::vector<OperatorRow>& rows);

/// Appends the operator table of the mean request. Every iteration that serves it counts in full, so that rows add up
/// to the breakdown. Phases: prefill, the iterations that read prompts (other sequences may decode beside them), and
/// decode. An operator's row shows the shape that takes most of its time.
void explain_inference(const InferenceInputs& inputs, const network::CollectivePrices& collectives,
                       InferenceMemo& memo, std::vector<OperatorRow>& rows);

}  // namespace shardscape::step
