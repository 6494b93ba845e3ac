// Do requests take as long by execution as by price, on random plans, loads and machines?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape {
namespace {

struct FlattenedCase {
  Setting setting;
  ParallelPlan plan;
};

/// Fabrics on which a group has its links to itself or shares them evenly, and the stack's overlaps.
FlattenedCase draw(std::uint64_t seed) {
  test::ScenarioGenerator generator(seed);
  FlattenedCase c;
  const auto ranks = generator.pick<std::int64_t>({2, 4, 8, 16});
  Setting& s = c.setting;
  s.model = test::llama(generator.pick<std::int64_t>({4, 8, 16}), 2048, 32, 8, 5632, 32000);
  s.system.device = test::round_device();
  s.system.fabric = {"cluster", {}};
  s.system.fabric.dimensions.push_back(test::dimension(
      "inner", generator.coin() ? DimensionKind::switched : DimensionKind::ring,
      {std::min<std::int64_t>(ranks, 4)}, generator.between(50e9, 400e9), generator.between(0, 2e-6)));
  if (ranks > 4) {
    s.system.fabric.dimensions.push_back(
        test::dimension("outer", DimensionKind::switched, {ranks / 4}, generator.between(10e9, 50e9), 2e-6));
    s.system.fabric.dimensions.back().scope = LinkScope::scale_out;
  }
  StackProfile& stack = s.system.stack;
  stack = test::plain_stack();
  const double host = generator.pick({0.0, 1e-5, 1e-4});
  stack.host.decode_layer = Seconds(host * generator.between(0, 2));
  stack.host.per_collective = Seconds(host * generator.between(0, 0.2));
  stack.host.decode_gap = Seconds(host * generator.between(0, 0.1));
  stack.host.decode_step_fixed = Seconds(generator.pick({0.0, 1e-3}));
  stack.host.decode_sequence = Seconds(generator.pick({0.0, 1e-4}));
  stack.host.decode_stream = 0.3 * stack.host.decode_sequence;
  stack.communication.call = Seconds(generator.between(0, 1e-5));
  stack.communication.rank_step = Seconds(generator.between(0, 5e-6));
  stack.communication.context_overlap = generator.pick({0.0, 0.5});
  stack.communication.pipeline_async = generator.coin();
  stack.serving.scheduler = generator.coin() ? ServingPolicy::chunked : ServingPolicy::prefill_priority;
  stack.serving.max_batch = generator.pick<std::int64_t>({4, 64});
  stack.serving.token_budget = stack.serving.max_batch + generator.pick<std::int64_t>({100, 700, 4000});
  s.workload = test::inference(generator.pick<std::int64_t>({128, 512, 1024}),
                               generator.pick<std::int64_t>({2, 30}), generator.pick<std::int64_t>({16, 32}));
  do {
    c.plan = generator.plan(s);
  } while (c.plan.tensor > 8);
  c.plan.sequence_parallel = false;
  return c;
}

Prediction predict(const FlattenedCase& c, ExecutionMode mode) {
  return Simulator(c.setting, {.time_infeasible = true, .mode = mode}).run(c.plan);
}

// By how much they may differ, and why: sampled tokens go back to the first stage by a message that has no
// price, and stages send while others compute; where their groups share links, all of them are priced as if
// they sent at once, in both directions, and executed they get out of each other's way (at most, half of what
// is sent).
TEST(FlattenedInferenceProperty, AgreesWithThePricedIterations) {
  std::vector<double> gaps;
  for (std::uint64_t seed = 1; seed <= test::seeds(60); ++seed) {
    const FlattenedCase c = draw(seed);
    const Prediction h = predict(c, ExecutionMode::hierarchical);
    if (h.status == Status::indivisible) continue;
    const Prediction f = predict(c, ExecutionMode::flattened);
    ASSERT_EQ(f.status, h.status);
    EXPECT_NEAR(f.breakdown.total().value(), f.e2e.value(), 1e-9 * f.e2e.value());
    const double gap = f.e2e / h.e2e - 1;
    gaps.push_back(std::abs(gap));
    const Seconds sent = h.breakdown[TimeClass::tensor_comm] + h.breakdown[TimeClass::context_comm] +
                         h.breakdown[TimeClass::pipeline_comm];
    const double quicker = c.plan.pipeline > 1 ? 0.5 * (sent / (h.e2e - h.breakdown[TimeClass::bubble])) : 0;
    EXPECT_LT(gap, 0.05) << test::describe(seed, c.plan);
    EXPECT_GT(gap, -std::max(0.05, quicker)) << test::describe(seed, c.plan);
    EXPECT_NEAR(f.breakdown[TimeClass::compute] / h.breakdown[TimeClass::compute], 1, 0.02)
        << test::describe(seed, c.plan);
  }
  if (!test::all_seeds()) return;
  ASSERT_GE(gaps.size(), 30U);
  std::ranges::sort(gaps);
  EXPECT_LT(gaps[gaps.size() / 2], 0.005);
}

}  // namespace
}  // namespace shardscape
