#include "engine/step/plan_pipeline.h"

#include "engine/model/layer_key.h"
#include "engine/network/groups/rank_group.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/zero.h"

namespace shardscape::step {

namespace {

/// Whether any group of this kind lies in more than one domain of the scale-up network, with ranks numbered as in the
/// plan: such groups tile the ranks in blocks, and a domain may hold a block whole or cut it.
bool leaves_domain(const FabricSpec& fabric, const network::RankGroup& group) {
  if (group.depth == 0) return false;
  std::int64_t domain = 1;
  for (const DimensionSpec& dimension : fabric.dimensions) {
    if (dimension.scope == LinkScope::scale_out) break;
    domain *= dimension.size();
  }
  const auto& outer = group.levels[static_cast<std::size_t>(group.depth - 1)];
  return domain % (static_cast<std::int64_t>(outer.extent) * outer.stride) != 0;
}

}  // namespace

bool order_decides_pairs(const StackProfile& stack) {
  return stack.communication.expert_overlap > 0 &&
         stack.communication.overlapped_exchanges == OverlappedExchanges::between_domains;
}

bool overlaps_exchanges(const Setting& setting, const ParallelPlan& plan) {
  const StackProfile& stack = setting.system.stack;
  if (stack.communication.expert_overlap <= 0 || !model::layer_key(plan, plan.microbatch).dispatches)
    return false;
  if (zero_shards(plan, ZeroState::weights) || scatters_each_microbatch(plan, stack)) return false;
  if (order_decides_pairs(stack) &&
      !leaves_domain(setting.system.fabric, network::PlanLayout(plan).group(ParallelGroup::expert)))
    return false;
  return plan.pipeline == 1 || plan.chunked();
}

schedule::PipelineShape pipeline_shape(const Setting& setting, const ParallelPlan& plan) {
  const std::int64_t per_microbatch = static_cast<std::int64_t>(plan.data) * plan.microbatch;
  const bool plain = plan.pipeline == 1 && !row_of(plan.schedule).forwards_first && plan.virtual_stages == 1;
  return {plain ? kPlainSchedule : plan.schedule, plan.pipeline, plan.both_ways() ? 2 : plan.virtual_stages,
          static_cast<std::int32_t>(setting.workload.global_batch / per_microbatch),
          overlaps_exchanges(setting, plan)};
}

std::optional<model::Partition> training_partition(const Setting& setting, const ParallelPlan& plan) {
  model::Partition split;
  if (!model::partition_layers(setting.model, setting.system.stack,
                               {plan.pipeline, plan.virtual_stages, Phase::training}, split))
    return std::nullopt;
  if (plan.both_ways()) model::fold_both_ways(split);
  return split;
}

}  // namespace shardscape::step
