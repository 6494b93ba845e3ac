// Which state of the parameters ZeRO shards over the ranks that hold copies of them (Rajbhandari et al. 2020),
// and when their gradients are scattered.
#pragma once

#include <algorithm>

#include "engine/spec/parallel_groups.h"
#include "engine/spec/stack.h"

namespace shardscape {

/// The state that ZeRO shards; the value is the stage that shards it first.
enum class ZeroState : std::uint8_t { optimizer = 1, gradients = 2, weights = 3 };

constexpr bool zero_shards(const ParallelPlan& plan, ZeroState state) {
  return plan.zero_stage >= static_cast<std::int32_t>(state);
}

/// Whether the gradients of every microbatch are scattered at once, so that no rank keeps them whole; otherwise once,
/// after the last one.
constexpr bool scatters_each_microbatch(const ParallelPlan& plan, const StackProfile& stack) {
  if (zero_shards(plan, ZeroState::weights)) return true;
  return zero_shards(plan, ZeroState::gradients) && stack.zero2_gradients == Zero2Gradients::per_microbatch;
}

/// The ZeRO stage as the time of a step sees it: gradients that are scattered once, after the last microbatch, are
/// scattered in stage 1 as well, and where they lie until then is a matter of memory.
constexpr std::int32_t timed_zero_stage(const ParallelPlan& plan, const StackProfile& stack) {
  const bool once = zero_shards(plan, ZeroState::gradients) && !scatters_each_microbatch(plan, stack);
  return once ? static_cast<std::int32_t>(ZeroState::optimizer) : plan.zero_stage;
}

/// What one call of the gradients of these copies sends: the bucket of the stack, under ZeRO its own, grown with the
/// ranks of the group (Megatron Core: a bucket_size of max(40 M, 1 M x data-parallel ranks) where none is given).
inline Bytes gradient_bucket(const ParallelPlan& plan, const StackProfile& stack, ParallelGroup copies) {
  const StackProfile::Communication& of = stack.communication;
  const bool own = zero_shards(plan, ZeroState::optimizer) && of.zero_bucket > Bytes(0);
  return std::max(own ? of.zero_bucket : of.bucket, ranks_of(plan, copies) * of.bucket_per_rank);
}

}  // namespace shardscape
