// Serves two pools: prices or executes iterations of each pool, measures transfers of caches between them, and turns
// what the simulated requests met into latencies and rates.
#include "engine/step/serving/pools.h"

#include "engine/serving/live/serve_pools.h"
#include "engine/step/serving/ffn_split.h"
#include "engine/step/serving/links_beside.h"
#include "engine/step/serving/time_load.h"

#include <algorithm>
#include <utility>

namespace shardscape::step {

namespace {

using serving::DisaggregatedMeasured;
using serving::Iteration;

/// The inputs of one server's iterations. All requests may come to the same server, so costs are sampled up to the load
/// of all of them.
InferenceInputs inputs_of(const Pool& pool) {
  ServingShape shape = pool.inputs.shape;
  shape.clients = std::max<std::int64_t>(pool.setting.workload.concurrency, 1);
  return {pool.setting, pool.inputs.plan, pool.inputs.layers, shape};
}

serving::Pool pool_of(const Pool& pool, const serving::Timer& timer) {
  const ServingShape& shape = pool.inputs.shape;
  return {pool.inputs.plan.data / shape.coupled * shape.groups, rules_of(inputs_of(pool)), timer};
}

/// The decoding pool. Coupled replicas share one queue, and have the places of all of them together.
serving::Pool decoding_pool(const Pool& pool, const serving::Timer& timer) {
  const std::int64_t coupled = pool.inputs.shape.coupled;
  serving::Pool all = pool_of(
      pool, [&timer, coupled](const Iteration& iteration) { return timer(of_busiest(iteration, coupled)); });
  all.rules.slots *= coupled;
  return all;
}

Iteration one_prompt(const Setting& setting) {
  const auto tokens = static_cast<double>(setting.workload.prompt_tokens);
  return {0, 0, tokens, tokens * tokens, 0.5 * tokens * tokens, 1};
}

/// A pool whose requests are simulated. Coupled replicas are the ranks of one server, with the places and the cache of
/// all of them together.
serving::LivePool live_pool(const Pool& pool, const serving::Timer& timer) {
  serving::LiveRules rules = live_rules(inputs_of(pool));
  join_ranks(pool.inputs.shape.coupled, rules);
  rules.first_prompts = first_prompts(pool.setting);
  const std::int64_t coupled = rules.ranks;
  return {rules, [&timer, coupled](const Iteration& i) { return timer(of_busiest(i, coupled)); }};
}

void fill(const Setting& setting, std::int64_t gpus, const DisaggregatedMeasured& measured, Prediction& out) {
  fill_latencies(measured.requests, out);
  out.breakdown[TimeClass::kv_transfer] = Seconds(measured.exposed_transfer);
  out.kv_transfer = Seconds(measured.transfer);
  out.tokens_per_s_per_gpu = measured.requests.requests_per_s *
                             static_cast<double>(setting.workload.output_tokens) / static_cast<double>(gpus);
}

void explain(const Pool& pool, const std::vector<serving::ServedIteration>& iterations, double requests,
             std::vector<OperatorRow>& rows) {
  std::vector<WeightedIterations> weighted;
  for (const serving::ServedIteration& served : iterations)
    weighted.push_back({of_busiest(served.iteration, pool.inputs.shape.coupled), served.iterations,
                        static_cast<double>(served.progressing) / requests});
  explain_iterations(inputs_of(pool), pool.collectives, pool.memo, weighted, rows);
}

}  // namespace

double prefill_cached_tokens(const Setting& setting) {
  return whole_blocks(setting, setting.workload.prompt_tokens);
}

std::int64_t requests_per_replica(const Setting& setting, const ParallelPlan& pool) {
  return (requests_in_flight(setting, pool) + pool.data - 1) / pool.data;
}

ServingShape pool_shape(const Setting& setting, const ParallelPlan& pool, const std::vector<Bytes>& free,
                        const std::vector<Bytes>& request, double tokens) {
  const std::int64_t requests = requests_per_replica(setting, pool);
  const std::int64_t places = cache_places(setting, free, request);
  ServingShape shape;
  shape.coupled = coupled_replicas(pool);
  shape.groups = std::min<std::int64_t>({pool.pipeline, requests, places});
  const std::int64_t slots = std::min(places / shape.groups, setting.system.stack.serving.max_batch);
  shape.clients = (requests + shape.groups - 1) / shape.groups;
  shape.slots = slots;
  shape.resident =
      std::max(std::min(requests, shape.groups * slots), least_resident(setting, free, request, 1));
  if (setting.workload.load) size_cache(setting, free, request, tokens, shape);
  return shape;
}

bool time_disaggregated(const Pool& prefill, const Pool& decode, network::PricedNetwork& network,
                        bool plainly, Prediction& out, std::vector<OperatorRow>* operators,
                        PooledCourse& course, const serving::LoadObserver& observer) {
  const Setting& setting = decode.setting;
  const PoolInputs &reads = prefill.inputs, &writes = decode.inputs;
  KvTraffic traffic = kv_traffic(setting, {reads.plan, reads.layers, reads.placement},
                                 {writes.plan, writes.layers, writes.placement}, network);
  const auto timer_of = [&](const Pool& pool) {
    return iteration_timer(inputs_of(pool), pool.collectives, pool.memo, plainly, pool.run);
  };
  SplitFabric split;
  if (writes.plan.ffn > 0) split = split_fabric(setting, writes.plan, writes.placement, network);
  const serving::Timer read = timer_of(prefill);
  const serving::Timer write = writes.plan.ffn > 0
                                   ? split_timer(inputs_of(decode), decode.collectives, decode.memo, split)
                                   : timer_of(decode);
  // One iteration of each pool shows whether dead links cut ranks off; check that before anything is served.
  read(one_prompt(setting));
  out.step_time = Seconds(serving::total(write(full_decode(setting.workload, writes.shape))));
  const auto executed_cut = [](const Pool& pool) { return pool.run != nullptr && pool.run->unreachable; };
  if (traffic.unreachable || split.unreachable || executed_cut(prefill) || executed_cut(decode)) return false;
  if (prefill.collectives.unreachable() || decode.collectives.unreachable()) return true;

  const serving::KvFabric fabric{
      traffic.wires,        network.bytes_per_second(), traffic.flows,
      reads.plan.data,      writes.plan.data,           setting.system.stack.serving.kv_transfer,
      setting.model.layers, reads.shape.coupled,        writes.shape.coupled};
  const serving::DisaggregatedLoad load{load_of(inputs_of(prefill)), pool_of(prefill, read),
                                        decoding_pool(decode, write), fabric};
  const std::int64_t gpus = reads.plan.gpus() + writes.plan.gpus();
  out.kv_bytes = traffic.request;
  if (setting.workload.load) {
    serving::LivePool decoders = live_pool(decode, write);
    decoders.rules.keeps_prefixes = false;  // what decodes gets whole caches from the other pool
    serving::LivePool readers = live_pool(prefill, read);
    if (writes.plan.ffn == 0)
      share_links(prefill, decode, network.bytes_per_second(), traffic, readers, decoders);
    const serving::PooledServers servers{std::move(readers), std::move(decoders), fabric,
                                         static_cast<double>(setting.workload.prompt_tokens)};
    const serving::Offered offered{*setting.workload.load, setting.workload.concurrency, 1};
    fill_load(serving::serve_pools(offered, servers, observer), 1, static_cast<double>(gpus), out);
    return true;
  }
  const DisaggregatedMeasured measured = course(load, operators != nullptr);
  fill(setting, gpus, measured, out);
  if (operators == nullptr) return true;
  const double requests = measured.requests_measured;
  explain(prefill, measured.prefill_iterations, requests, *operators);
  if (writes.plan.ffn == 0) explain(decode, measured.decode_iterations, requests, *operators);
  return true;
}

}  // namespace shardscape::step
