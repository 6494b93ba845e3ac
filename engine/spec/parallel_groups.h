// The groups of ranks that a plan makes: one row per kind of group, with the axes that it spans. What a group
// is to the fabric (which ranks, in which order) follows from the plan's rank order (network::PlanLayout).
//
//   tensor      splits the matrices of a block, and the tokens of what lies between them (sequence parallel)
//   context     splits the tokens of a sequence
//   data_shard  holds copies of the same weights: gradients are reduced over it, and ZeRO shards over it. Where every
//               part of the model lies on two stages (ParallelPlan::both_ways), its calls join the ranks of both; the
//               numbers here are of one stage, those of calls schedule::PipelineShape::copies() times as large
//   pipeline    the stages
//
// Experts lie folded in the ranks of a stage (Megatron-Core's parallel folding, arXiv:2504.14960, section 3.2).
// Count these ranks in the plan's rank order without the pipeline: the expert tensor group is innermost, then
// the expert group, then what is left.
//
//   expert         deals the experts of a layer: tokens are sent to the ranks of theirs and back
//   expert_tensor  splits the matrices of each expert
//   expert_data    holds copies of the same experts: as data_shard, for them
//
// A plan that says nothing of experts (both degrees 1) splits them over its tensor group, and the last two are
// the tensor group and the data shard group.
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/enum_names.h"
#include "engine/spec/plan.h"

namespace shardscape {

enum class ParallelGroup : std::uint8_t {
  tensor,
  context,
  data_shard,
  pipeline,
  expert,
  expert_tensor,
  expert_data
};
SHARDSCAPE_ENUM_NAMES(ParallelGroup, "tensor", "context", "data", "pipeline", "expert", "expert tensor",
                      "expert data");
inline constexpr std::size_t kParallelGroups = enum_names<ParallelGroup>().size();

/// Whether a group exists for experts alone: models without any have no such group.
constexpr bool is_of_experts(ParallelGroup group) {
  return group == ParallelGroup::expert || group == ParallelGroup::expert_tensor ||
         group == ParallelGroup::expert_data;
}

/// Whether a group holds copies of the same weights, so that its operations are none of a layer's passes.
constexpr bool is_of_data(ParallelGroup group) {
  return group == ParallelGroup::data_shard || group == ParallelGroup::expert_data;
}

/// Whether the ranks of a group, which is none of experts, differ along an axis.
constexpr bool spans(ParallelGroup group, PlanAxis axis) {
  constexpr std::array<std::array<bool, kPlanAxes>, kParallelGroups> kRules = {{
      // tp     cp     dp     pp
      {true, false, false, false},  // tensor
      {false, true, false, false},  // context
      {false, true, true, false},   // data_shard
      {false, false, false, true},  // pipeline
      {},
      {},
      {},  // the groups of experts, which no axis describes
  }};
  return kRules[static_cast<std::size_t>(group)][static_cast<std::size_t>(axis)];
}

/// The groups that the operators of a layer call.
inline constexpr std::array kLayerGroups = {ParallelGroup::tensor, ParallelGroup::context,
                                            ParallelGroup::expert, ParallelGroup::expert_tensor};
/// The groups whose ranks hold copies of parameters: each parameter belongs to one of them, over which its
/// gradients are reduced and ZeRO shards it.
inline constexpr std::array kCopyGroups = {ParallelGroup::data_shard, ParallelGroup::expert_data};

/// Which ranks of a stage make up a group, counted in the plan's rank order: `extent` ranks, `stride` apart.
struct FoldedGroup {
  std::int64_t stride = 1, extent = 1;
};
/// The first group of experts of that kind, in a plan that folds experts.
inline FoldedGroup folded_group(const ParallelPlan& plan, ParallelGroup group) {
  const std::int64_t experts = static_cast<std::int64_t>(plan.expert_tensor) * plan.expert;
  if (group == ParallelGroup::expert_tensor) return {1, plan.expert_tensor};
  if (group == ParallelGroup::expert) return {plan.expert_tensor, plan.expert};
  return {experts, plan.stage_ranks() / experts};
}

/// Number of replicas of a server that share experts, because these lie over more ranks than a tensor group has
/// (data-parallel attention), or on ranks of their own; each has requests and a cache of its own, and their iterations
/// go together. Else 1.
inline std::int32_t coupled_replicas(const ParallelPlan& plan) {
  if (plan.ffn > 0) return plan.data;
  const std::int64_t experts = static_cast<std::int64_t>(plan.expert_tensor) * plan.expert;
  return experts > plan.tensor ? static_cast<std::int32_t>(experts / plan.tensor) : 1;
}

/// The group that a plan which does not fold experts uses in place of a group of experts; other groups stay.
constexpr ParallelGroup unfolded(ParallelGroup group) {
  if (group == ParallelGroup::expert_tensor) return ParallelGroup::tensor;
  return group == ParallelGroup::expert_data ? ParallelGroup::data_shard : group;
}

/// Number of ranks of one such group.
inline std::int32_t ranks_of(const ParallelPlan& plan, ParallelGroup group) {
  if (is_of_experts(group) && plan.folds_experts())
    return static_cast<std::int32_t>(folded_group(plan, group).extent);
  std::int32_t product = 1;
  for (const PlanAxis axis : plan.order) product *= spans(unfolded(group), axis) ? plan.degree(axis) : 1;
  return product;
}

/// Ranks of a stage that lie side by side: the product of the degrees inside the pipeline axis.
inline std::int64_t ranks_inside_pipeline(const ParallelPlan& plan) {
  std::int64_t inside = 1;
  for (const PlanAxis axis : plan.order) {
    if (axis == PlanAxis::pipeline) break;
    inside *= plan.degree(axis);
  }
  return plan.pipeline == 1 ? plan.stage_ranks() : inside;
}

/// Whether the groups of experts tile the ranks of a stage: their degrees divide them, and no group has ranks on
/// both sides of the pipeline axis without having them in whole rows.
inline bool folds_evenly(const ParallelPlan& plan) {
  if (!plan.folds_experts()) return true;
  const std::int64_t ranks = plan.stage_ranks(), inside = ranks_inside_pipeline(plan);
  if (ranks % (static_cast<std::int64_t>(plan.expert) * plan.expert_tensor) != 0) return false;
  for (const ParallelGroup group : {ParallelGroup::expert_tensor, ParallelGroup::expert}) {
    const FoldedGroup fold = folded_group(plan, group);
    const std::int64_t end = fold.stride * fold.extent;
    if (inside % end != 0 && end % inside != 0) return false;
  }
  return true;
}

}  // namespace shardscape
