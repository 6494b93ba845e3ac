// Latency and throughput of two pools of replicas, one that reads prompts and one that decodes
// (engine/serving/pooled_course.h), with the engine's own costs of each iteration and each transfer.
//
//   ranks    the first ranks of the machine prefill, the others decode; each pool is laid out by itself in
//            the plan's rank order
//   servers  as many per replica as it has pipeline stages (but no more than it can hold requests), so that
//            every stage has one to work on
//   places   per server: the stack's largest batch, or as many requests as the key-value cache has whole
//            blocks for: with their prompt in the first pool, with their last token in the second
//   unequal  the pool that prefills may have another device and another precision, on the same links (pools_differ());
//            caches leave as they are, so that both pools keep them in one type
//   coupled  replicas that share experts have iterations together (inference.h): in the first pool each reads the
//            prompts of its own queue, in the second sequences are dealt evenly
//   loads    that are simulated request by request are served by the same servers (live/serve_pools.h)
//   outputs  as in inference.h; rates are those of the requests done. The first token comes out of the
//            second pool: TTFT contains the transfer.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/step/serving/inference.h"
#include "engine/step/serving/kv_transfer.h"

namespace shardscape::step {

/// Tokens of a request's cache in the pool that prefills, and in the one that decodes; in whole blocks.
double prefill_cached_tokens(const Setting& setting);

/// Requests of one replica if they are spread evenly; at least 1.
std::int64_t requests_per_replica(const Setting& setting, const ParallelPlan& pool);

/// The servers of one replica and their places. `free`, `request`: see serving_shape(); `tokens`: those of the request.
ServingShape pool_shape(const Setting& setting, const ParallelPlan& pool, const std::vector<Bytes>& free,
                        const std::vector<Bytes>& request, double tokens);

struct PoolInputs {
  ParallelPlan plan;                       ///< the plan of this pool alone
  std::vector<model::StageLayers> layers;  ///< index: stage
  ServingShape shape;
  std::vector<std::int32_t> placement;  ///< index: rank of the pool; rank of the fabric
};

/// A pool, the setting with its own device and precision and what is remembered of that, the collectives over its
/// ranks, and what its execution needs; null where it is priced.
struct Pool {
  const Setting& setting;
  InferenceMemo& memo;
  const PoolInputs& inputs;
  const network::CollectivePrices& collectives;
  FlattenedRun* run = nullptr;
};

/// Finds the course of two pools; keeps its iterations where the flag says so.
using PooledCourse = serving::DisaggregatedMeasured(const serving::DisaggregatedLoad&, bool);

/// Fills what time_inference() fills, and the times and bytes of transfers. Returns false where dead links cut the
/// pools off from each other; the collectives of each pool tell whether links inside of it are dead. `operators`, where
/// given, gets the table of explain_inference() for both pools. `course`: tests have an obvious one.
/// `observer`: of a simulated load. What both pools share, such as the load and the servers' rules, is read from the
/// setting of the one that decodes.
bool time_disaggregated(const Pool& prefill, const Pool& decode, network::PricedNetwork& network,
                        bool plainly, Prediction& prediction, std::vector<OperatorRow>* operators,
                        PooledCourse& course = serving::serve_disaggregated,
                        const serving::LoadObserver& observer = {});

}  // namespace shardscape::step
