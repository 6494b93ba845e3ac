// Which microbatches leave the weight gradient of the LM head for the end of the step (Megatron Core:
// defer_embedding_wgrad_compute, wgrad_deferral_limit).
//
// The last stage keeps the head's input and the gradient of the logits of each deferred microbatch, so that its
// backward hands the gradient on earlier, and computes their products after its last backward, while the stages before
// it still work. The first microbatches of a step are deferred: the buffer has a fixed number of entries and takes no
// more when it is full.
//
// Nothing is deferred where there is no cool-down to hide in (one stage), where the schedule is none of Megatron
// Core's (gpipe) or puts weight gradients off itself (zero_bubble), and where every microbatch scatters its
// gradients (ZeRO-3, ZeRO-2 per microbatch).
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/spec/zero.h"

namespace shardscape {

/// Number of deferred microbatches, 0 to all `microbatches` of a step.
constexpr std::int32_t deferred_heads(const ParallelPlan& plan, const StackProfile& stack,
                                      std::int32_t microbatches) {
  const bool hides = plan.pipeline > 1 && row_of(plan.schedule).defers_head;
  if (!stack.head.deferred_weight_gradient || !hides) return 0;
  if (scatters_each_microbatch(plan, stack)) return 0;
  if (stack.head.deferral_limit == 0) return microbatches;
  return static_cast<std::int32_t>(std::min<std::int64_t>(stack.head.deferral_limit, microbatches));
}

}  // namespace shardscape
