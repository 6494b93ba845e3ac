// What to change so that a plan fits: held to an exhaustive search over one and two moves.
#include "engine/neighbours.h"

#include <gtest/gtest.h>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

/// A model of which a device of this many GB holds a part only.
Setting tight(double gigabytes) {
  Setting s;
  s.model = test::llama(8, 4096, 32, 8, 14336, 128000);
  s.system.device = test::round_device();
  s.system.device.hbm.stacks = 1;
  s.system.device.hbm.capacity_per_stack = Bytes(gigabytes * 1e9);
  s.system.fabric = test::crossbar(8);
  s.system.stack = test::plain_stack();
  s.workload = test::training(2048, 32);
  return s;
}

ParallelPlan start() {
  ParallelPlan plan = test::plan_of(1, 1, 1, 8);
  plan.microbatch = 4;
  return plan;
}

TEST(NearestFeasible, EachFitsKeepsTheGpusAndComesByFewestMoves) {
  const Setting setting = tight(40);
  ASSERT_EQ(Simulator(setting).run(start()).status, Status::memory);
  const std::vector<Neighbour> found = nearest_feasible(setting, start(), 3);
  ASSERT_EQ(found.size(), 3U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Neighbour& near = found[i];
    EXPECT_EQ(near.plan.gpus(), 8);
    const Prediction again = Simulator(setting).run(near.plan);
    EXPECT_EQ(again.status, Status::ok);
    EXPECT_EQ(again.step_time, near.prediction.step_time);
    if (i == 0) continue;
    EXPECT_GE(near.moves, found[i - 1].moves);
    if (near.moves == found[i - 1].moves) {
      EXPECT_GE(near.prediction.step_time, found[i - 1].prediction.step_time);
    }
  }
}

TEST(NearestFeasible, FindsTheOnlyAxisThatHelps) {
  // Where a ZeRO stage alone makes it fit, the list begins with plans of one move, and one of them is a
  // change of the stage only. The same by hand: stages 1 to 3 of the very plan.
  const Setting setting = tight(80);
  ParallelPlan plan = start();
  plan.microbatch = 1;
  plan.recompute = Recompute::full;
  const Status as_is = Simulator(setting).run(plan).status;
  ParallelPlan sharded = plan;
  sharded.zero_stage = 3;
  ASSERT_EQ(Simulator(setting).run(sharded).status, Status::ok);
  const std::vector<Neighbour> found = nearest_feasible(setting, plan, 100);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().moves, 1);
  bool listed = false;
  for (const Neighbour& near : found) {
    EXPECT_FALSE(near.plan == plan && as_is != Status::ok);
    listed = listed || (near.plan == sharded && near.moves == 1);
  }
  EXPECT_TRUE(listed);
}

TEST(NearestFeasible, NothingHelpsOnADeviceWithoutMemory) {
  EXPECT_TRUE(nearest_feasible(tight(0.01), start(), 3).empty());
}

TEST(NearestFeasible, InferenceMovesDegreesOnly) {
  Setting setting = tight(5);
  setting.workload = test::inference(1024, 64, 8);
  const ParallelPlan plan = test::plan_of(1, 1, 1, 8);
  ASSERT_EQ(Simulator(setting).run(plan).status, Status::memory);
  const std::vector<Neighbour> found = nearest_feasible(setting, plan, 3);
  ASSERT_FALSE(found.empty());
  for (const Neighbour& near : found) {
    EXPECT_EQ(near.plan.recompute, plan.recompute);
    EXPECT_EQ(near.plan.microbatch, plan.microbatch);
    EXPECT_EQ(near.plan.zero_stage, plan.zero_stage);
    EXPECT_LT(near.plan.data, 8);
  }
}

}  // namespace
}  // namespace shardscape
