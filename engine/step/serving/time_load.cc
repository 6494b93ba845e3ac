// Turns a plan into the rules and shapes of live servers (engine/serving/live), runs one that stands for all or all
// of them, prices their iterations by the step's own memo, and writes means and percentiles into the prediction.
#include "engine/step/serving/time_load.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "engine/model/block_kinds.h"
#include "engine/serving/live/load_floor.h"

namespace shardscape::step {

namespace {

/// The largest block of a cache that is told from larger ones.
constexpr std::int64_t kMostBlock = 1 << 12;

bool grows_on_demand(const StackProfile::Serving& stack) {
  if (stack.kv_growth != KvGrowth::usual) return stack.kv_growth == KvGrowth::on_demand;
  return row_of(stack.scheduler).on_demand;
}

/// Seconds in which the host launches the kernels of an iteration that reads prompts.
double eager_floor(const Setting& setting, const StackProfile::Serving& stack) {
  const ModelSpec& model = setting.model;
  const auto experts = static_cast<double>(model.expert_layers());
  const bool narrow = setting.policy().expert_products == Precision::fp4;
  const Seconds of_experts = stack.eager_expert_layer + (narrow ? stack.eager_fp4_layer : Seconds(0));
  const double layers = (static_cast<double>(model.layers) - experts) * stack.eager_layer.value() +
                        experts * of_experts.value();
  return stack.eager_floor.value() + model::launches(model) * layers;
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
  rules.keeps_prefixes = stack.prefix_cache && workload.load->has_prefixes();
  const double block = in.shape.token_bytes * static_cast<double>(rules.kv_block);
  const std::array<std::pair<Bytes, BytesPerSecond>, 2> lower = {
      {{stack.host_cache, stack.host_bandwidth}, {stack.disk_cache, stack.disk_bandwidth}}};
  for (std::size_t tier = 0; tier < lower.size() && block > 0; ++tier) {
    rules.lower_blocks[tier] =
        static_cast<std::int64_t>(lower[tier].first.value() / block / static_cast<double>(in.shape.groups));
    rules.seconds_per_block[tier] = block / lower[tier].second.value();
  }
  rules.watermark = static_cast<std::int64_t>(stack.kv_watermark * static_cast<double>(rules.kv_blocks));
  rules.poll_interval = stack.poll_interval;
  rules.cached_prompt = rules.keeps_prefixes ? workload.load->common.end : 0;
  rules.schedule_ahead = stack.schedule_ahead;
  rules.answer_after = stack.answer_after;
  rules.pool_prompts = stack.pool_prompts;
  rules.queue = stack.queue;
  rules.routing = stack.routing;
  rules.servers = in.plan.data / in.shape.coupled * in.shape.groups;
  rules.frontend = stack.frontend.value();
  rules.eager_floor = eager_floor(in.setting, stack);
  rules.graph_tokens = stack.graph_tokens;
  rules.drafts = workload.load->speculation.draft_tokens;
  rules.window = static_cast<double>(in.setting.model.sliding_window);
  return rules;
}

double prompts_of_all(std::int64_t ranks) {
  double sum = 0;
  for (std::int64_t left = ranks; left > 0; --left) sum += 1 / static_cast<double>(left);
  return static_cast<double>(ranks) * sum;
}

double first_prompts(const Setting& setting) {
  const bool steady = setting.workload.load->statistic == ClientStatistic::steady;
  return steady ? 0 : setting.system.stack.serving.first_prompts.value();
}

void join_ranks(std::int64_t coupled, serving::LiveRules& rules) {
  rules.ranks = coupled;
  rules.balanced = std::llround(prompts_of_all(coupled));
  rules.kv_blocks *= coupled;
  rules.max_batch *= coupled;
  rules.watermark *= coupled;
  for (std::int64_t& blocks : rules.lower_blocks) blocks *= coupled;
}

serving::Iteration of_busiest(serving::Iteration all, std::int64_t coupled) {
  if (coupled == 1 || all.decoding <= 0) return all;
  const double most = std::ceil(all.decoding / static_cast<double>(coupled));
  all.cached *= most / all.decoding;
  all.decoding = most;
  return all;
}

namespace {

/// Floors in the place of what a simulation measures.
serving::LiveMeasured measured(const serving::LoadFloor& floor) {
  const auto always = [](double seconds) {
    serving::Percentiles p;
    p.mean = p.p50 = p.p90 = p.p95 = p.p99 = seconds;
    return p;
  };
  serving::LiveMeasured least;
  least.ttft = always(floor.ttft);
  least.itl = least.tpot = always(floor.tpot);
  least.e2e = always(floor.e2e);
  least.requests = 1;
  least.requests_per_s = floor.in_a_run;
  least.sustained_per_s = floor.requests_per_s;
  return least;
}

}  // namespace

void time_load(const InferenceInputs& in, const serving::Timer& timer, LoadTiming timing, Prediction& out,
               const serving::LoadObserver& observer) {
  const StackProfile::Serving& stack = in.setting.system.stack.serving;
  const bool dealt = stack.attention_ranks == AttentionRanks::dealt;
  const std::int64_t ranks = dealt ? in.shape.coupled : 1, coupled = in.shape.coupled / ranks;
  const auto share_of = [&](std::int64_t all) { return (all + coupled - 1) / coupled; };
  LoadSpec load = *in.setting.workload.load;
  for (RequestCount* count : {&load.requests, &load.warm_up})
    if (!count->per_client) count->number = share_of(count->number);
  const std::int64_t clients = share_of(in.setting.workload.concurrency);
  serving::LiveRules rules = live_rules(in);
  join_ranks(ranks, rules);
  rules.balance_wait = dealt ? stack.balance_wait : 0;
  rules.first_prompts = first_prompts(in.setting);
  const serving::Timer of_ranks = [&](const serving::Iteration& i) { return timer(of_busiest(i, ranks)); };
  const serving::Timer& timed = ranks > 1 ? of_ranks : timer;
  // Each of `coupled` replicas takes as long as the busiest, and together they have no more clients than there are.
  const double busy = load.open() ? 1
                                  : static_cast<double>(in.setting.workload.concurrency) /
                                        static_cast<double>(clients * coupled);
  const double replicas = static_cast<double>(coupled) * busy;
  std::optional<serving::LoadFloor> floor;
  if (load.open() || timing == LoadTiming::floors)
    floor = serving::load_floor({load, clients, coupled}, rules, timed,
                                std::min(in.shape.clients, in.shape.slots));
  const auto gpus = static_cast<double>(in.plan.gpus());
  if (timing == LoadTiming::floors) return fill_load(measured(*floor), replicas, gpus, out);
  const bool too_many = floor && load.offered_per_s() > floor->requests_per_s * replicas;
  const serving::LiveMeasured m = serving::serve_load(
      {load, clients, coupled, too_many}, rules, timed,
      timing == LoadTiming::plain ? serving::Stride::plain : serving::Stride::runs, observer);
  fill_load(m, replicas, gpus, out);
  out.decode_batch *= busy;
  // Of a run that is too short to show it: no run that goes on holds more than that.
  if (too_many && m.sustained_per_s == 0) out.load.sustained_per_s = floor->requests_per_s * replicas;
}

void fill_load(const serving::LiveMeasured& m, double replicas, double gpus, Prediction& out) {
  serving::Measured common;
  common.ttft = m.ttft;
  common.itl = m.itl;
  common.e2e = m.e2e;
  common.decode_batch = m.decode_batch;
  common.classes = m.classes;
  common.waiting = m.waiting;
  fill_latencies(common, out);
  out.breakdown[TimeClass::kv_transfer] += Seconds(m.exposed_transfer);
  out.kv_transfer = Seconds(m.transfer);
  out.tokens_per_s_per_gpu = m.output_tokens_per_s * replicas / gpus;
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
  more.attainment = m.attainment;
  more.accepted_tokens = m.accepted;
  more.prefix_hits = m.hits;
  more.sustained_per_s = m.sustained_per_s * replicas;
  more.done = m.done;
  more.unsteady = m.unsteady;
}

}  // namespace shardscape::step
