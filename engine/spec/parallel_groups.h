// The groups of ranks that a plan makes: one row per kind of group, with the axes that it spans. What a group
// is to the fabric (which ranks, in which order) follows from the plan's rank order (network::PlanLayout).
//
//   tensor      splits the matrices of a block, and the tokens of what lies between them (sequence parallel)
//   context     splits the tokens of a sequence
//   data_shard  holds copies of the same weights: gradients are reduced over it, and ZeRO shards over it
//   pipeline    the stages
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/enum_names.h"
#include "engine/spec/plan.h"

namespace shardscape {

enum class ParallelGroup : std::uint8_t { tensor, context, data_shard, pipeline };
SHARDSCAPE_ENUM_NAMES(ParallelGroup, "tensor", "context", "data", "pipeline");
inline constexpr std::size_t kParallelGroups = enum_names<ParallelGroup>().size();

/// Whether the ranks of a group differ along an axis.
constexpr bool spans(ParallelGroup group, PlanAxis axis) {
  constexpr std::array<std::array<bool, kPlanAxes>, kParallelGroups> kRules = {{
      // tp     cp     dp     pp
      {true, false, false, false},  // tensor
      {false, true, false, false},  // context
      {false, true, true, false},   // data_shard
      {false, false, false, true},  // pipeline
  }};
  return kRules[static_cast<std::size_t>(group)][static_cast<std::size_t>(axis)];
}

/// The groups that the operators of a layer call.
inline constexpr std::array kLayerGroups = {ParallelGroup::tensor, ParallelGroup::context};
/// The groups whose ranks hold copies of parameters: each parameter belongs to one of them, over which its
/// gradients are reduced and ZeRO shards it.
inline constexpr std::array kCopyGroups = {ParallelGroup::data_shard};

/// Ranks of one such group.
inline std::int32_t ranks_of(const ParallelPlan& plan, ParallelGroup group) {
  std::int32_t product = 1;
  for (const PlanAxis axis : plan.order) product *= spans(group, axis) ? plan.degree(axis) : 1;
  return product;
}

}  // namespace shardscape
