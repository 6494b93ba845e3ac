// What of a plan shapes the operators of one rank.
#pragma once

#include <cstdint>

#include "engine/spec/parallel_groups.h"

namespace shardscape::model {

/// How the experts of a layer lie on ranks: dealt over `ranks` of them, with so many copies beside one of each, each
/// split over `tensor`.
struct ExpertSplit {
  std::int32_t ranks = 1;
  std::int32_t tensor = 1;
  std::int32_t redundant = 0;
  friend bool operator==(const ExpertSplit&, const ExpertSplit&) = default;
};

/// Without a plan's word for it, a tensor group splits experts as it splits all else.
constexpr ExpertSplit experts_by_tensor(std::int32_t tensor) { return {1, tensor, 0}; }

/// Plans that agree in it share their operators and what those cost.
struct LayerKey {
  std::int32_t tensor = 1;
  std::int32_t context = 1;
  std::int32_t microbatch = 1;  ///< sequences
  bool sequence_parallel = false;
  std::int32_t expert = 1, expert_tensor = 1;  ///< as the plan says
  /// Tokens are sent to the ranks of their experts. Else the tensor group holds the experts that its tokens
  /// need: it splits each, or, where it works on the same tokens everywhere, deals them, and its sum of partial
  /// outputs brings all together.
  bool dispatches = false;
  /// Of the members of an expert group, the one whose rank this is; kBusiest: the one that gets most tokens.
  static constexpr std::int32_t kBusiest = -1;
  std::int32_t expert_rank = kBusiest;
  std::int32_t redundant_experts = 0;  ///< as the plan says

  [[nodiscard]] ExpertSplit experts() const {
    return expert * expert_tensor == 1 ? experts_by_tensor(tensor)
                                       : ExpertSplit{expert, expert_tensor, redundant_experts};
  }
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};

/// Whether the expert groups are the tensor group, which works on the same tokens everywhere.
inline bool shares_tokens(const ParallelPlan& plan) {
  if (plan.sequence_parallel || plan.expert * plan.expert_tensor != plan.tensor) return false;
  for (const PlanAxis axis : plan.order) {
    if (axis == PlanAxis::tensor) return true;
    if (axis != PlanAxis::pipeline && plan.degree(axis) > 1) return false;
  }
  return true;
}

/// `sequences` of a microbatch.
inline LayerKey layer_key(const ParallelPlan& plan, std::int32_t sequences) {
  return {plan.tensor,
          plan.context,
          sequences,
          plan.sequence_parallel,
          plan.expert,
          plan.expert_tensor,
          plan.folds_experts() && !shares_tokens(plan),
          LayerKey::kBusiest,
          plan.redundant_experts};
}

/// The same of a server, whose tensor group works on the same tokens everywhere.
inline LayerKey serving_layer_key(ParallelPlan plan, std::int32_t sequences) {
  plan.sequence_parallel = false;
  return layer_key(plan, sequences);
}

/// Training: operators keep what backward needs. Prefill: whole prompts. Decode: one new token per sequence.
enum class Mode : std::uint8_t { training, prefill, decode };

}  // namespace shardscape::model
