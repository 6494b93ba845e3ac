#include "engine/step/feasibility.h"

#include <algorithm>
#include <numeric>

#include "engine/model/block_kinds.h"
#include "engine/model/layer_key.h"
#include "engine/model/partition.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/zero.h"
#include "engine/step/plan_pipeline.h"

namespace shardscape::step {

namespace {

Reason sequence_rule(std::int64_t tokens, const ParallelPlan& plan) {
  // Causal attention is balanced over a context group by giving each rank two pieces of the sequence.
  if (plan.context > 1 && tokens % (2L * plan.context) != 0) return Reason::sequence_by_context;
  if (plan.sequence_parallel && tokens / plan.context % plan.tensor != 0) return Reason::sequence_by_context;
  return Reason::none;
}

Reason pipeline_rule(const Setting& setting, const ParallelPlan& plan) {
  return model::partition_rule(setting.model, setting.system.stack,
                               {plan.pipeline, plan.virtual_stages, setting.workload.phase});
}

Reason batch_rule(const WorkloadSpec& workload, const ParallelPlan& plan) {
  if (workload.phase == Phase::inference) {
    if (plan.disaggregated() || workload.load)
      return Reason::none;  // each request goes to the server with the least to do
    // Replicas that have iterations together may have different numbers of requests.
    const std::int32_t servers = plan.data / std::gcd(plan.data, coupled_replicas(plan));
    return workload.concurrency % servers == 0 ? Reason::none : Reason::requests_by_data;
  }
  const std::int64_t per_microbatch = static_cast<std::int64_t>(plan.data) * plan.microbatch;
  if (workload.global_batch % per_microbatch != 0) return Reason::batch_by_data;
  const std::int64_t microbatches = workload.global_batch / per_microbatch;
  const ScheduleRow& schedule = row_of(plan.schedule);
  const bool plain = plan.pipeline == 1 || (schedule.chunks && !plan.chunked());
  const bool divides = plain || schedule.divides == nullptr || schedule.divides(plan.pipeline, microbatches);
  return divides ? Reason::none : schedule.indivisible;
}

/// A server's experts lie in its tensor group, which sums up their outputs, or over whole replicas that lie side by
/// side. The ranks of a context group decode the same tokens: none of them has experts of its own.
bool served_experts(const ParallelPlan& plan) {
  if (model::shares_tokens(plan)) return true;
  const std::int32_t replicas = coupled_replicas(plan);
  const bool whole = replicas > 1 && plan.data % replicas == 0 && plan.context == 1 &&
                     plan.expert * plan.expert_tensor == replicas * plan.tensor;
  const auto place = [&](PlanAxis axis) { return std::ranges::find(plan.order, axis); };
  const bool inside =
      plan.tensor == 1 || replicas == plan.data || place(PlanAxis::tensor) < place(PlanAxis::data);
  return whole && inside && folds_evenly(plan);
}

/// Whether the experts of a layer can be dealt over so many ranks.
Reason dealing_rule(const Setting& setting, const ParallelPlan& plan, std::int32_t ranks) {
  if (!setting.model.moe) return Reason::no_experts;
  const MixtureOfExperts& moe = *setting.model.moe;
  const std::int64_t slots = moe.experts + plan.redundant_experts;
  if (slots % ranks != 0)
    return plan.redundant_experts > 0 ? Reason::slots_by_ranks : Reason::experts_by_ranks;
  // Some rank would have an expert twice.
  return slots > moe.experts * ranks ? Reason::slots_by_ranks : Reason::none;
}

Reason expert_rule(const Setting& setting, const ParallelPlan& plan) {
  if (plan.ffn > 0) return dealing_rule(setting, plan, plan.ffn);
  if (!plan.folds_experts()) return Reason::none;
  if (const Reason reason = dealing_rule(setting, plan, plan.expert); reason != Reason::none) return reason;
  const MixtureOfExperts& moe = *setting.model.moe;
  if (moe.expert_ffn_hidden % plan.expert_tensor != 0) return Reason::expert_width_by_ranks;
  if (setting.workload.phase == Phase::inference)
    return served_experts(plan) ? Reason::none : Reason::ranks_by_experts;
  return folds_evenly(plan) ? Reason::none : Reason::ranks_by_experts;
}

/// Checks the pool that prefills.
Reason prefill_rule(const Setting& setting, const ParallelPlan& plan) {
  if (!plan.disaggregated()) return Reason::none;
  const ParallelPlan pool = prefill_plan(plan);
  for (const Reason reason : {model::tensor_rule(setting.model, pool.tensor), pipeline_rule(setting, pool),
                              expert_rule(setting, pool)}) {
    if (reason != Reason::none) return reason;
  }
  return Reason::none;
}

}  // namespace

Verdict check_plan(const Setting& setting, const ParallelPlan& plan) {
  const WorkloadSpec& workload = setting.workload;
  const std::int64_t tokens =
      workload.phase == Phase::training ? workload.sequence_length : workload.prompt_tokens;
  Reason reason = Reason::none;
  const auto broken = [&](Reason found) { return (reason = found) != Reason::none; };
  if (broken(model::tensor_rule(setting.model, plan.tensor, !plan.folds_experts() && plan.ffn == 0)) ||
      broken(sequence_rule(tokens, plan)) || broken(pipeline_rule(setting, plan)) ||
      broken(batch_rule(workload, plan)) || broken(prefill_rule(setting, plan)) ||
      broken(expert_rule(setting, plan)))
    return {Status::indivisible, reason};
  for (const Precision precision : setting.policy().multiplied())
    if (!setting.system.device.supports(precision)) return {Status::unsupported, Reason::precision};
  if (plan.disaggregated()) {
    for (const Precision precision : setting.prefill_policy().multiplied())
      if (!setting.system.prefilling().supports(precision)) return {Status::unsupported, Reason::precision};
  }
  // Same rule as in Megatron-Core: without it, ranks that hold the same tokens would all send them.
  const bool repeated = workload.phase == Phase::training && plan.tensor > 1 && !plan.sequence_parallel;
  if (repeated && model::layer_key(plan, 1).dispatches) return {Status::unsupported, Reason::repeated_tokens};
  const bool drafts = workload.load && workload.load->speculation.draft_tokens > 0;
  if (plan.ffn > 0 && (plan.ffn == 1 || plan.pipeline > 1 || plan.context > 1 || drafts))
    return {Status::unsupported, Reason::split_pool};
  const bool cannot = plan.virtual_stages > 1 && !plan.chunked();
  // Data-parallel traffic beside the pairs of microbatches that come from both ends is not modelled.
  const bool beside =
      zero_shards(plan, ZeroState::weights) || scatters_each_microbatch(plan, setting.system.stack);
  if (cannot || (plan.both_ways() && (plan.pipeline % 2 != 0 || beside)))
    return {Status::unsupported, Reason::schedule};
  return {};
}

bool too_long(const Setting& setting, const ParallelPlan& plan, bool every_pass) {
  const WorkloadSpec& workload = setting.workload;
  if (workload.phase == Phase::training) {
    const std::int64_t microbatches =
        workload.global_batch / (static_cast<std::int64_t>(plan.data) * plan.microbatch);
    const std::int64_t chunks = static_cast<std::int64_t>(plan.pipeline) * plan.virtual_stages;
    if (microbatches <= kMostPasses / 2 / chunks) return false;  // forwards and backwards count separately
    const schedule::PipelineShape shape = pipeline_shape(setting, plan);
    return every_pass || shape.both_ways() || shape.overlaps;
  }
  const StackProfile::Serving& rules = setting.system.stack.serving;
  const std::int64_t servers =
      plan.disaggregated() ? 1 : plan.data / std::gcd(plan.data, coupled_replicas(plan));
  // A prompt that is not cut into pieces takes one iteration at most.
  const std::int64_t pieces =
      reads_beside(rules.scheduler) ? (workload.prompt_tokens - 1) / rules.token_budget + 1 : 1;
  if (workload.load) {
    const LoadSpec& load = *workload.load;
    return load.requests.of(workload.concurrency) + load.warm_up.of(workload.concurrency) >
           kMostIterations / pieces;
  }
  return workload.concurrency / servers > kMostIterations / pieces;
}

}  // namespace shardscape::step
