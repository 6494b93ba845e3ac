// Are iterations in two half batches priced as they run? Of any model, plan of one stage and wire, with equal experts.
#include <gtest/gtest.h>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/plain_simulator.h"

namespace shardscape {
namespace {

Setting drawn_halves(test::ScenarioGenerator& draw, std::int64_t ranks) {
  Setting s;
  s.model = test::llama_of_experts(draw.pick<std::int64_t>({2, 5}), 16, draw.pick<std::int64_t>({0, 1}));
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, draw.pick({1e9, 10e9, 100e9, 400e9}), draw.between(0, 5e-6));
  s.system.stack = test::plain_stack();
  StackProfile::Serving& serving = s.system.stack.serving;
  serving.two_batch_overlap = true;
  serving.dispatch =
      draw.pick({ServedDispatch::all_gather, ServedDispatch::all_to_all, ServedDispatch::kernels});
  serving.redundant_experts = draw.pick<std::int64_t>({0, 8});
  s.system.stack.communication.expert_overlap = draw.pick({1.0, draw.between(0.1, 1)});
  s.system.stack.communication.expert_hidden = draw.pick({1.0, draw.between(0, 1)});
  s.system.stack.host.decode_layer = Seconds(draw.pick({0.0, 20e-6, 1e-3}));
  s.system.stack.host.decode_gap = Seconds(draw.pick({0.0, 5e-6}));
  s.workload = test::inference(draw.pick<std::int64_t>({100, 777}), draw.pick<std::int64_t>({2, 17}),
                               ranks * draw.pick<std::int64_t>({1, 2, 7, 32}));
  return s;
}

// Executed iterations are sampled at some attention times and run linearly between, where the longer of an exchange
// and of what computes beside it has a bend: by that much they may differ.
TEST(TwoBatchesProperty, ModesAgreeWhereNothingContends) {
  constexpr double kBend = 0.02;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    test::ScenarioGenerator draw(seed);
    const std::int32_t ranks = draw.pick({2, 4, 8});
    const Setting setting = drawn_halves(draw, ranks);
    ParallelPlan plan = test::plan_of(1, 1, 1, ranks);
    plan.expert = ranks;
    const Prediction fast = Simulator(setting, SimulateOptions{}).run(plan);
    const Prediction slow = Simulator(setting, {.mode = ExecutionMode::flattened}).run(plan);
    ASSERT_EQ(fast.status, Status::ok) << name_of(fast.reason);
    EXPECT_NEAR(slow.itl / fast.itl, 1, kBend);
    EXPECT_NEAR(slow.ttft / fast.ttft, 1, kBend);
    EXPECT_NEAR(fast.breakdown.total().value(), fast.e2e.value(), 1e-9 * fast.e2e.value());
    // Every iteration one by one, nothing remembered.
    const Prediction plain = test::PlainSimulator(setting).run(plan);
    EXPECT_NEAR(plain.e2e / fast.e2e, 1, 1e-6);
  }
}

}  // namespace
}  // namespace shardscape
