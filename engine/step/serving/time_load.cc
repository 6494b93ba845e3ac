#include "engine/step/serving/time_load.h"

#include <algorithm>
#include <cmath>

#include "engine/step/serving/inference.h"

namespace shardscape::step {

namespace {

/// The largest block of a cache that is told from larger ones.
constexpr std::int64_t kMostBlock = 1 << 12;

bool grows_on_demand(const StackProfile::Serving& stack) {
  if (stack.kv_growth != KvGrowth::usual) return stack.kv_growth == KvGrowth::on_demand;
  return stack.scheduler == ServingPolicy::vllm || stack.scheduler == ServingPolicy::sglang;
}

/// Seconds in which the host launches the kernels of an iteration that reads prompts. Latent attention has about twice as
/// many in a layer as attention with heads of their own: projections down and up with norms between them, rotary parts
/// of their own, and the assembly of keys and values.
double eager_floor(const ModelSpec& model, const StackProfile::Serving& stack) {
  constexpr double kLatentKernels = 2;
  const auto experts = static_cast<double>(model.expert_layers());
  const double layers = (static_cast<double>(model.layers) - experts) * stack.eager_layer.value() +
                        experts * stack.eager_expert_layer.value();
  return stack.eager_floor.value() + (model.latent ? kLatentKernels : 1) * layers;
}

LoadPrediction::Tail tail(const serving::Percentiles& p) { return {Seconds(p.p90), Seconds(p.p99)}; }

}  // namespace

serving::LiveRules live_rules(const InferenceInputs& in) {
  const StackProfile::Serving& stack = in.setting.system.stack.serving;
  const WorkloadSpec& workload = in.setting.workload;
  serving::LiveRules rules;
  rules.policy = stack.scheduler;
  rules.on_demand = grows_on_demand(stack);
  rules.token_budget = stack.token_budget;
  rules.max_batch = stack.max_batch;
  rules.kv_block = std::min(stack.kv_block, kMostBlock);
  const std::int64_t longest = workload.longest_prompt() + workload.longest_output();
  const auto room = static_cast<std::int64_t>(in.shape.cache_tokens) / rules.kv_block;
  rules.kv_blocks = std::max(room, (longest + rules.kv_block - 1) / rules.kv_block);
  rules.watermark = static_cast<std::int64_t>(stack.kv_watermark * static_cast<double>(rules.kv_blocks));
  rules.poll_interval = stack.poll_interval;
  rules.cached_prompt = workload.load->cached_prompt;
  rules.schedule_ahead = stack.schedule_ahead;
  rules.queue = stack.queue;
  rules.routing = stack.routing;
  rules.servers = in.plan.data / in.shape.coupled * in.shape.groups;
  rules.frontend = stack.frontend.value();
  rules.eager_floor = eager_floor(in.setting.model, stack);
  rules.graph_tokens = stack.graph_tokens;
  rules.window = static_cast<double>(in.setting.model.sliding_window);
  return rules;
}

void time_load(const InferenceInputs& in, const serving::Timer& timer, bool plainly, Prediction& out) {
  const std::int64_t coupled = in.shape.coupled;
  const auto share_of = [&](std::int64_t all) { return (all + coupled - 1) / coupled; };
  LoadSpec load = *in.setting.workload.load;
  for (RequestCount* count : {&load.requests, &load.warm_up})
    if (!count->per_client) count->number = share_of(count->number);
  const std::int64_t clients = share_of(in.setting.workload.concurrency);
  const serving::LiveMeasured m =
      serving::serve_load({load, clients, coupled}, live_rules(in), timer,
                          plainly ? serving::Stride::plain : serving::Stride::runs);
  serving::Measured common;
  common.ttft = m.ttft;
  common.itl = m.itl;
  common.e2e = m.e2e;
  common.decode_batch = m.decode_batch;
  common.classes = m.classes;
  common.waiting = m.waiting;
  fill_latencies(common, out);
  const auto replicas = static_cast<double>(coupled);
  out.tokens_per_s_per_gpu = m.output_tokens_per_s * replicas / static_cast<double>(in.plan.gpus());
  LoadPrediction& more = out.load;
  more.ttft = tail(m.ttft);
  more.itl = tail(m.itl);
  more.tpot = tail(m.tpot);
  more.e2e = tail(m.e2e);
  more.tpot_mean = Seconds(m.tpot.mean);
  more.tpot_spread = {Seconds(m.tpot.p50), Seconds(m.tpot.p95)};
  more.queue = Seconds(m.queue);
  more.requests_per_s = m.requests_per_s * replicas;
  more.kv_mean = m.kv_mean;
  more.kv_peak = m.kv_peak;
  more.preemptions = static_cast<double>(m.preemptions) / static_cast<double>(m.requests);
  more.sustained_per_s = m.sustained_per_s * replicas;
}

}  // namespace shardscape::step
