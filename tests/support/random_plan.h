// Draws random plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/base/counter_rng.h"
#include "engine/spec/plan.h"

namespace shardscape::test {

/// A plan whose axes tile the ranks, in a random order: the degrees are the ranks' prime factors, dealt out.
inline ParallelPlan random_plan(CounterRng& random, std::int32_t ranks) {
  ParallelPlan plan;
  std::int32_t* degrees[] = {&plan.tensor, &plan.context, &plan.data, &plan.pipeline};
  for (std::int32_t factor = 2; ranks > 1; ++factor) {
    for (; ranks % factor == 0; ranks /= factor) *degrees[random.below(4)] *= factor;
  }
  for (std::size_t i = kPlanAxes; i > 1; --i) std::swap(plan.order[i - 1], plan.order[random.below(i)]);
  return plan;
}

}  // namespace shardscape::test
