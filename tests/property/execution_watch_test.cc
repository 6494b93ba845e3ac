// What a watch hears of executed steps: nothing that is not so, more and more of it, and no answer of it changes a
// result.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/network/placement/placement.h"
#include "engine/simulate.h"
#include "sweep/placement/optimise_placement.h"
#include "sweep/runner/evaluator.h"
#include "sweep/yaml/load.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"

namespace shardscape {
namespace {

constexpr double kWatchRounding = 1e-9;

struct WatchedCase {
  Setting setting;
  ParallelPlan plan;
};

WatchedCase watched_case(std::uint64_t seed) {
  test::ScenarioGenerator random(seed);
  WatchedCase one{random.setting(Phase::training), {}};
  one.setting.model.layers = std::min<std::int64_t>(one.setting.model.layers, 8);
  one.setting.workload.global_batch = std::min<std::int64_t>(one.setting.workload.global_batch, 32);
  one.setting.system.device.hbm.capacity_per_stack *= 1000;
  one.plan = random.plan(one.setting);
  return one;
}

void expect_equal_steps(const Prediction& a, const Prediction& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.step_time, b.step_time);
  EXPECT_EQ(a.memory_peak, b.memory_peak);
  EXPECT_EQ(a.breakdown, b.breakdown);
}

TEST(ExecutionWatch, HearsTimesThatStepsTakeAtLeast) {
  int watched = 0, heard_most = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(60); ++seed) {
    const WatchedCase one = watched_case(seed);
    Simulator simulator(one.setting, {.mode = ExecutionMode::flattened});
    const Prediction alone = simulator.run(one.plan);
    if (alone.status != Status::ok) continue;
    std::vector<Seconds> heard;
    simulator.watch([&](Seconds at_least) {
      heard.push_back(at_least);
      return true;
    });
    expect_equal_steps(simulator.run(one.plan), alone);
    ASSERT_FALSE(heard.empty());
    EXPECT_TRUE(std::ranges::is_sorted(heard)) << test::describe(seed, one.plan);
    EXPECT_LE(heard.back(), (1 + kWatchRounding) * alone.step_time) << test::describe(seed, one.plan);
    ++watched;
    if (heard.size() > 1 && heard.back() > 0.7 * alone.step_time) ++heard_most;
    if (HasFailure()) return;
  }
  EXPECT_GT(watched, test::at_least(20));
  EXPECT_GT(heard_most, watched / 2);
}

// A step is given up exactly where its time is beyond what is wanted, or not at all; and the next plan knows nothing of
// it.
TEST(ExecutionWatch, EndsWhatTakesLongerAndNothingElse) {
  int ended = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(40); ++seed) {
    const WatchedCase one = watched_case(seed);
    Simulator simulator(one.setting, {.mode = ExecutionMode::flattened});
    const Prediction alone = simulator.run(one.plan);
    if (alone.status != Status::ok) continue;
    for (const double share : {0.1, 0.6, 0.95, 1.0, 1.1}) {
      const Seconds most = share * (1 + kWatchRounding) * alone.step_time;
      bool gave_up = false;
      simulator.watch([&](Seconds at_least) {
        gave_up = gave_up || at_least > most;
        return !gave_up;
      });
      const Prediction out = simulator.run(one.plan);
      if (gave_up) {
        EXPECT_LT(share, 1) << test::describe(seed, one.plan);
        EXPECT_EQ(out.status, Status::out_of_range);
        ++ended;
      } else {
        expect_equal_steps(out, alone);
      }
    }
    simulator.watch({});
    expect_equal_steps(simulator.run(one.plan), alone);
    if (HasFailure()) return;
  }
  EXPECT_GT(ended, test::at_least(30));
}

// Where many ranks are alike a step is executed folded first, and goes on so as a scout where folding leaves the rounding
// of sums open. What the watch hears of that is not so by proof: here it is never more than the whole takes, and nearly
// all of it in some of these plans, whose stages send gradients and gather weights over the same adapters.
TEST(ExecutionWatch, ScoutsHearNoMoreThanTheWholeTakes) {
  const yaml::Catalog catalog({test::source_dir()});
  int heard_all = 0, executed = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(40); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting;
    setting.model = test::llama(8, 4096, 32, 8, 14336, 32000);
    setting.system.stack = yaml::load_stack(catalog, random.pick({"megatron-core", "megatron-lm"})).value();
    const yaml::Cluster machine = yaml::load_cluster(catalog, random.pick({"dgx-a100", "dgx-h100"})).value();
    Problems problems;
    setting.system.fabric = machine.fabric.instantiate(512, problems);
    ASSERT_TRUE(problems.empty());
    setting.system.device = machine.device;
    ParallelPlan plan = test::plan_of(random.pick({4, 8}), random.pick({1, 2}), 2, 1);
    plan.data = 512 / plan.tensor / plan.context / plan.pipeline;
    plan.sequence_parallel = true;
    plan.zero_stage = 1;
    plan.schedule = ScheduleKind::interleaved;
    plan.virtual_stages = 2;
    plan.order = random.coin() ? kDefaultRankOrder
                               : rank_order_of(static_cast<std::int32_t>(random.below(kRankOrders)));
    setting.workload = test::training(2048, plan.data * plan.pipeline * 4);
    Simulator simulator(setting, {.time_infeasible = true, .mode = ExecutionMode::flattened});
    const Prediction alone = simulator.run(plan);
    if (alone.status != Status::ok && alone.status != Status::memory) continue;
    Seconds heard;
    simulator.watch([&](Seconds at_least) {
      heard = at_least;
      return true;
    });
    expect_equal_steps(simulator.run(plan), alone);
    EXPECT_LE(heard, (1 + kWatchRounding) * alone.step_time) << test::describe(seed, plan);
    heard_all += heard > 0.998 * alone.step_time ? 1 : 0;
    ++executed;
  }
  EXPECT_GT(heard_all, 0) << executed;
  RecordProperty("heard", heard_all);
}

// Executions of placements that are slower than one known are ended: the choice, and its time, are those of all in
// full.
TEST(ExecutionWatch, PlacementsAreChosenAsIfAllWereExecuted) {
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(2); ++seed) {
    WatchedCase one = watched_case(seed);
    test::ScenarioGenerator random(seed);
    one.setting.system.fabric = {
        "nodes",
        {test::dimension("inner", DimensionKind::switched, {4}, 100e9, 1e-6),
         test::dimension("outer", DimensionKind::switched, {2}, random.between(2e9, 20e9), 5e-6)}};
    one.plan = test::plan_of(2, 1, 2, 2);
    one.plan.order = rank_order_of(static_cast<std::int32_t>(random.below(kRankOrders)));
    const SimulateOptions options{.mode = ExecutionMode::flattened};
    Simulator plain(one.setting, options);
    Details details;
    const Prediction on_plain = plain.run(one.plan, {}, &details);
    if (on_plain.status != Status::ok) continue;
    const auto run_on = [&](const network::Placement& placement) {
      SimulateOptions there = options;
      there.placement = placement;
      return Simulator(one.setting, there).run(one.plan);
    };
    const network::Fabric fabric(one.setting.system.fabric);
    const auto best = placement::optimise_placement(
        fabric, one.plan, network::plan_demand(one.plan, details.group_bytes),
        [&](const network::Placement& at) { return at.empty() ? on_plain.step_time : run_on(at).step_time; });
    const auto evaluator = sweep::simulator_factory(options)(one.setting, sweep::PlacementChoice::optimised);
    expect_equal_steps(evaluator->evaluate(one.plan), run_on(best.best.placement));
    moved += best.best.time < best.plain.time ? 1 : 0;
  }
  EXPECT_GT(moved, 0);
}

}  // namespace
}  // namespace shardscape
