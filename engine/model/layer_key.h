// The part of a plan that determines the operators of one rank.
#pragma once

#include <cstdint>

#include "engine/spec/parallel_groups.h"

namespace shardscape::model {

/// How the experts of a layer lie on ranks: dealt over `ranks` ranks with `redundant` copies beside one of each expert,
/// and each expert split over `tensor` ranks.
struct ExpertSplit {
  std::int32_t ranks = 1;
  std::int32_t tensor = 1;
  std::int32_t redundant = 0;
  friend bool operator==(const ExpertSplit&, const ExpertSplit&) = default;
};

/// The split where a plan does not say otherwise: the tensor group splits experts as it splits all else.
constexpr ExpertSplit experts_by_tensor(std::int32_t tensor) { return {1, tensor, 0}; }

/// Plans with equal keys have the same operators, at the same costs.
struct LayerKey {
  std::int32_t tensor = 1;
  std::int32_t context = 1;
  std::int32_t microbatch = 1;  ///< sequences per microbatch
  bool sequence_parallel = false;
  std::int32_t expert = 1, expert_tensor = 1;  ///< degrees of experts, as in the plan
  /// Whether tokens are sent to the ranks of their experts. Otherwise the tensor group holds the experts that its
  /// tokens need: it splits each, or deals them where all its ranks have the same tokens, and the sum of its partial
  /// outputs joins the results.
  bool dispatches = false;
  /// The member of the expert group that this rank is; kBusiest: the member that gets most tokens.
  static constexpr std::int32_t kBusiest = -1;
  std::int32_t expert_rank = kBusiest;
  std::int32_t redundant_experts = 0;  ///< copies of experts, as in the plan

  [[nodiscard]] ExpertSplit experts() const {
    return expert * expert_tensor == 1 ? experts_by_tensor(tensor)
                                       : ExpertSplit{expert, expert_tensor, redundant_experts};
  }
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};

/// Whether each expert group is a tensor group whose ranks all work on the same tokens.
inline bool shares_tokens(const ParallelPlan& plan) {
  if (plan.sequence_parallel || plan.ffn > 0 || plan.expert * plan.expert_tensor != plan.tensor) return false;
  for (const PlanAxis axis : plan.order) {
    if (axis == PlanAxis::tensor) return true;
    if (axis != PlanAxis::pipeline && plan.degree(axis) > 1) return false;
  }
  return true;
}

/// The key of a plan in training, for microbatches of `sequences` sequences.
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

/// The key of a plan in a server, where all ranks of a tensor group work on the same tokens.
inline LayerKey serving_layer_key(ParallelPlan plan, std::int32_t sequences) {
  plan.sequence_parallel = false;
  return layer_key(plan, sequences);
}

/// Training: operators keep what backward needs. Prefill: whole prompts. Decode: one new token per sequence.
enum class Mode : std::uint8_t { training, prefill, decode };

}  // namespace shardscape::model
