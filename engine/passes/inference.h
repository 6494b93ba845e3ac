// Latency of one inference request under a steady load.
//
//   TTFT  the prompt of one request through all stages, head included
//   ITL   one decode step of the replica's batch through all stages, plus the prefills of the other requests
//   that a continuous batching
//         scheduler squeezes in: (batch - 1) x prefill / output tokens per step
//   e2e   TTFT + (output tokens - 1) x ITL
//
// A replica's requests are split into as many groups as there are pipeline stages, so that every stage has
// one to work on.
#pragma once

#include <vector>

#include "engine/memory/memory.h"
#include "engine/network/collective_model.h"
#include "engine/passes/layer_costs.h"
#include "engine/prediction.h"

namespace shardscape::passes {

struct InferenceInputs {
  const Setting& setting;
  const ParallelPlan& plan;
  const LayerCosts& prefill;  ///< one request
  const LayerCosts& decode;   ///< one group of requests
  const std::vector<std::int32_t>& layers;
  double requests = 1;  ///< per replica
};

/// Requests decoded together on one stage.
std::int32_t decode_group(const WorkloadSpec& workload, const ParallelPlan& plan);

/// Fills ttft, itl, e2e, step_time (= one decode step), rates and breakdown.
void time_inference(const InferenceInputs& inputs, network::CollectiveModel& collectives,
                    Prediction& prediction);

}  // namespace shardscape::passes
