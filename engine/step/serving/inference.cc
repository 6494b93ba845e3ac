// Measures how a replica serves a steady load: builds load and rules from the setting, times iterations by prices or by
// execution, and keeps what plans share.
#include "engine/step/serving/inference.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/spec/ranges.h"
#include "engine/step/serving/time_load.h"

namespace shardscape::step {

namespace {

using serving::Iteration;
using serving::Measured;

/// Most segments of courses that are remembered, some ten megabytes: each concurrency has a course of its own.
constexpr std::size_t kMostSegments = 1 << 16;

/// Requests of replicas that have iterations together: of all of them, and of the one with the most.
struct CoupledRequests {
  std::int64_t all, busiest;
};
CoupledRequests coupled_requests(const Setting& setting, const ParallelPlan& plan, std::int64_t coupled) {
  const std::int64_t of_all = requests_in_flight(setting, plan) * coupled;
  const std::int64_t all = setting.workload.load ? (of_all + plan.data - 1) / plan.data : of_all / plan.data;
  return {all, (all + coupled - 1) / coupled};
}

InferenceLatency latency(const serving::Spread& spread) { return {Seconds(spread.p50), Seconds(spread.p95)}; }

}  // namespace

serving::Load load_of(const InferenceInputs& in) {
  const WorkloadSpec& workload = in.setting.workload;
  return {in.shape.clients, workload.prompt_tokens, workload.output_tokens,
          static_cast<double>(in.setting.model.sliding_window)};
}

serving::Rules rules_of(const InferenceInputs& in) {
  const StackProfile::Serving& stack = in.setting.system.stack.serving;
  return {reads_beside(stack.scheduler) ? ServingPolicy::chunked : ServingPolicy::prefill_priority,
          stack.token_budget, in.shape.slots};
}

IterationCosts iteration_costs(const InferenceInputs& in, const network::CollectivePrices& collectives,
                               InferenceMemo& memo, IterationCosts::Unit unit) {
  return {in, memo.token_costs(in.setting, in.plan), collectives, unit};
}

namespace {

serving::Timer plain_timer(const InferenceInputs& in, const network::CollectivePrices& collectives,
                           InferenceMemo& memo, bool plainly, FlattenedRun* flattened) {
  if (flattened == nullptr) {
    const auto costs = std::make_shared<IterationCosts>(
        iteration_costs(in, collectives, memo, IterationCosts::Unit::seconds));
    return [costs](const Iteration& iteration) { return (*costs)(iteration); };
  }
  return executed_timer(in, memo.token_costs(in.setting, in.plan), collectives, *flattened, plainly);
}

/// Iterations of the model that drafts, on plans that live as long as their costs. They are priced, also where those of
/// the other are executed.
serving::Timer draft_timer(const InferenceInputs& in, const network::CollectivePrices& collectives,
                           InferenceMemo& memo) {
  struct Costs {
    ParallelPlan plan;
    std::optional<IterationCosts> costs;
  };
  Draft& draft = memo.draft(in.setting);
  const auto made = std::make_shared<Costs>();
  made->plan = draft.plan(in.plan);
  ServingShape shape = in.shape;
  shape.groups = 1;
  const std::array<std::int32_t, 4> layout = {made->plan.tensor, made->plan.expert, made->plan.expert_tensor,
                                              made->plan.redundant_experts};
  TokenCosts& costs = draft.costs.try_emplace(layout, draft.setting, made->plan).first->second;
  made->costs.emplace(InferenceInputs{draft.setting, made->plan, draft.layers, shape}, costs, collectives);
  return [made](const Iteration& iteration) { return (*made->costs)(iteration); };
}

}  // namespace

serving::Timer iteration_timer(const InferenceInputs& in, const network::CollectivePrices& collectives,
                               InferenceMemo& memo, bool plainly, FlattenedRun* flattened) {
  serving::Timer timer = plain_timer(in, collectives, memo, plainly, flattened);
  if (!has_drafts(in.setting.workload)) return timer;
  const StackProfile& stack = in.setting.system.stack;
  const SequenceHost host{host_of_iteration(stack, in.batches(), 1).tokens,
                          stack.host.draft_sequence.value()};
  return with_drafts(in.setting.workload.load->speculation.draft_tokens, host, std::move(timer),
                     draft_timer(in, collectives, memo));
}

double whole_blocks(const Setting& setting, std::int64_t tokens) {
  const std::int64_t block = setting.system.stack.serving.kv_block;
  return static_cast<double>((tokens + block - 1) / block * block);
}

double cached_tokens(const Setting& setting) {
  return whole_blocks(setting, setting.workload.prompt_tokens + setting.workload.output_tokens);
}

std::int64_t requests_in_flight(const Setting& setting, const ParallelPlan& plan) {
  const WorkloadSpec& workload = setting.workload;
  if (!workload.open_loop()) return workload.concurrency;
  return setting.system.stack.serving.max_batch * plan.pipeline * plan.data;
}

std::int64_t cache_places(const Setting& setting, const std::vector<Bytes>& free,
                          const std::vector<Bytes>& request) {
  auto room = setting.workload.open_loop() ? ranges::kRequests.high
                                           : static_cast<double>(setting.workload.concurrency);
  for (std::size_t stage = 0; stage < free.size(); ++stage) {
    if (request[stage] <= Bytes(0)) continue;
    room = std::min(room, std::floor(setting.system.stack.serving.kv_share * (free[stage] / request[stage])));
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::max(0.0, room)));
}

std::int64_t least_resident(const Setting& setting, const std::vector<Bytes>& free,
                            const std::vector<Bytes>& request, double needed) {
  const double share = setting.system.stack.serving.kv_share;
  double least = std::ceil(needed);
  for (std::size_t stage = 0; stage < free.size(); ++stage) {
    if (request[stage] <= Bytes(0)) continue;
    const double room = free[stage] / request[stage];
    if (needed > share * room && least <= room) least = std::ceil(needed / share);
  }
  return static_cast<std::int64_t>(least);
}

ServingShape serving_shape(const Setting& setting, const ParallelPlan& plan, const std::vector<Bytes>& free,
                           const std::vector<Bytes>& request) {
  const StackProfile::Serving& stack = setting.system.stack.serving;
  ServingShape shape;
  shape.coupled = coupled_replicas(plan);
  const std::int64_t requests = coupled_requests(setting, plan, shape.coupled).busiest;
  const std::int64_t places =
      std::max<std::int64_t>(1, std::min(requests, cache_places(setting, free, request)));
  shape.groups = std::min<std::int64_t>({plan.pipeline, requests, places});
  shape.clients = (requests + shape.groups - 1) / shape.groups;
  shape.slots = std::min({places / shape.groups, stack.max_batch, shape.clients});
  if (places >= requests) shape.slots = std::min(stack.max_batch, shape.clients);
  shape.resident = std::max(std::min({requests, places, shape.groups * stack.max_batch}),
                            least_resident(setting, free, request, 1));
  if (setting.workload.load) size_cache(setting, free, request, cached_tokens(setting), shape);
  return shape;
}

void size_cache(const Setting& setting, const std::vector<Bytes>& free, const std::vector<Bytes>& request,
                double each, ServingShape& shape) {
  const auto groups = static_cast<double>(shape.groups);
  double tokens = ranges::kTokens.high * ranges::kRequests.high;
  for (std::size_t stage = 0; stage < free.size(); ++stage) {
    if (request[stage] > Bytes(0))
      tokens =
          std::min(tokens, setting.system.stack.serving.kv_share * (free[stage] / request[stage]) * each);
  }
  shape.cache_tokens = std::max(0.0, tokens / groups);
  shape.token_bytes = std::ranges::max(request).value() / each;
  const WorkloadSpec& workload = setting.workload;
  const auto longest = static_cast<double>(workload.longest_prompt() + workload.longest_output());
  shape.resident = std::max(shape.resident, least_resident(setting, free, request, groups * longest / each));
}

Iteration full_decode(const WorkloadSpec& workload, const ServingShape& shape) {
  Iteration iteration;
  iteration.decoding = static_cast<double>(std::min(shape.clients, shape.slots));
  iteration.cached = iteration.decoding * (static_cast<double>(workload.prompt_tokens) +
                                           std::max(1.0, 0.5 * static_cast<double>(workload.output_tokens)));
  return iteration;
}

TokenCosts& InferenceMemo::token_costs(const Setting& setting, const ParallelPlan& plan) {
  const std::array<std::int32_t, 6> layout = {plan.tensor,        plan.context,           plan.expert,
                                              plan.expert_tensor, plan.redundant_experts, plan.ffn};
  return costs_.try_emplace(layout, setting, plan).first->second;
}

Draft& InferenceMemo::draft(const Setting& setting) {
  if (!draft_) draft_.emplace(setting);
  return *draft_;
}

const serving::Trajectory& InferenceMemo::trajectory(const serving::Load& load, const serving::Rules& rules) {
  const std::array<std::int64_t, 3> key{load.clients, rules.slots, rules.token_budget};
  if (segments_ > kMostSegments && !trajectories_.contains(key)) {
    trajectories_.clear();
    segments_ = 0;
  }
  const auto [entry, fresh] = trajectories_.try_emplace(key);
  if (fresh) {
    entry->second = serving::trajectory(load, rules);
    segments_ += entry->second.segments.size();
  }
  return entry->second;
}

void InferenceMemo::clear() {
  costs_.clear();
  draft_.reset();
  trajectories_.clear();
  segments_ = 0;
}

void fill_latencies(const Measured& measured, Prediction& out) {
  out.ttft = Seconds(measured.ttft.mean);
  out.itl = Seconds(measured.itl.mean);
  out.e2e = Seconds(measured.e2e.mean);
  out.ttft_spread = latency(measured.ttft);
  out.itl_spread = latency(measured.itl);
  out.e2e_spread = latency(measured.e2e);
  out.decode_batch = measured.decode_batch;
  for (const TimeClass c : enum_values<TimeClass>()) out.breakdown[c] = Seconds(measured.classes[c]);
  out.breakdown[TimeClass::bubble] += Seconds(measured.waiting);
}

void time_inference(const InferenceInputs& in, const network::CollectivePrices& collectives,
                    InferenceMemo& memo, LoadTiming how, Prediction& out, FlattenedRun* flattened,
                    const serving::LoadObserver& observer) {
  const bool plainly = how == LoadTiming::plain;
  const serving::Load load = load_of(in);
  const serving::Timer timer = iteration_timer(in, collectives, memo, plainly, flattened);
  if (flattened != nullptr) {
    // One iteration shows whether dead links cut ranks off. Its time would be zero then, and measuring a
    // period of iterations that take no time would make no sense.
    timer(full_decode(in.setting.workload, in.shape));
    if (flattened->unreachable) return;
  }
  if (in.setting.workload.load) return time_load(in, timer, how, out, observer);
  fill_latencies(serving::measure(memo.trajectory(load, rules_of(in)), load, timer), out);
  const auto [all, busiest] = coupled_requests(in.setting, in.plan, in.shape.coupled);
  out.decode_batch *= static_cast<double>(all) / static_cast<double>(busiest);
  out.step_time = Seconds(serving::total(timer(full_decode(in.setting.workload, in.shape))));
  const WorkloadSpec& workload = in.setting.workload;
  out.tokens_per_s_per_gpu = static_cast<double>(workload.concurrency * workload.output_tokens) /
                             out.e2e.value() / static_cast<double>(in.plan.gpus());
}

GroupBytes inference_bytes(const InferenceInputs& in, const network::CollectivePrices& collectives,
                           InferenceMemo& memo) {
  IterationCosts costs = iteration_costs(in, collectives, memo, IterationCosts::Unit::bytes);
  const serving::Load load = load_of(in);
  const Measured sent = serving::measure(memo.trajectory(load, rules_of(in)), load,
                                         [&](const Iteration& iteration) { return costs(iteration); });
  GroupBytes bytes;
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    if (std::ranges::find(kCopyGroups, group) != kCopyGroups.end()) continue;
    bytes[group] = Bytes(sent.classes[IterationCosts::class_of_bytes(group)]);
  }
  return bytes;
}

}  // namespace shardscape::step
