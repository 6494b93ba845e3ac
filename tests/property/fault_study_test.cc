// Does a plan that is timed again under faults take what the plain path says, in any order of faults?
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/plain_simulator.h"
#include "tests/support/seeds.h"

namespace shardscape {
namespace {

SimulateOptions exact() {
  SimulateOptions options;
  options.collective_tolerance = 1e-9;
  return options;
}

double duration(const Prediction& p, const Setting& setting) {
  return (setting.workload.phase == Phase::training ? p.step_time : p.e2e).value();
}

/// One to three faults: soft and dead links one way or both ways, and, in training, sick devices.
FaultSet random_faults(test::ScenarioGenerator& generator, const network::Fabric& fabric, Phase phase) {
  FaultSet faults;
  const std::uint64_t count = 1 + generator.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool device = phase == Phase::training && generator.below(3) == 0;
    if (device) {
      const auto rank =
          static_cast<std::int32_t>(generator.below(static_cast<std::uint64_t>(fabric.ranks())));
      faults.devices.push_back({rank, generator.between(0.3, 1), generator.between(0.3, 1)});
      continue;
    }
    if (fabric.links().empty()) continue;
    LinkFault fault;
    fault.link = static_cast<std::int32_t>(generator.below(fabric.links().size()));
    fault.removed = generator.below(5) == 0;
    fault.derate = generator.between(0.1, 1);
    if (generator.coin()) fault.added_latency = Seconds(generator.between(0, 1e-5));
    faults.links.push_back(fault);
    const std::int32_t opposite = fabric.reverse_of(fault.link);
    if (opposite < 0 || generator.coin()) continue;
    fault.link = opposite;
    faults.links.push_back(fault);
  }
  return faults;
}

void expect_same(const Prediction& fast, const Prediction& slow, const Setting& setting,
                 const std::string& what) {
  ASSERT_EQ(fast.status, slow.status) << what;
  ASSERT_EQ(fast.reason, slow.reason) << what;
  if (slow.status != Status::ok) return;
  ASSERT_NEAR(duration(fast, setting) / duration(slow, setting), 1, 1e-9) << what;
}

TEST(FaultStudy, RerunIsThePlainPath) {
  int compared = 0;
  for (std::uint64_t seed = 1; compared < test::cases(1000) && seed < 2000; ++seed) {
    test::ScenarioGenerator generator(seed);
    const Phase phase = seed % 4 == 0 ? Phase::inference : Phase::training;
    const Setting setting = generator.setting(phase);
    const network::Fabric fabric(setting.system.fabric);
    Simulator fast(setting, exact());
    test::PlainSimulator slow(setting, exact());
    std::vector<FaultSet> draws;
    for (int i = 0; i < 6; ++i) draws.push_back(random_faults(generator, fabric, phase));
    for (int i = 0; i < 4; ++i) {
      const ParallelPlan plan = generator.plan(setting);
      if (fast.run(plan).status != Status::ok) continue;
      for (const FaultSet& faults : draws) {
        const std::string what = test::describe(seed, plan);
        expect_same(fast.rerun(faults), slow.run(plan, faults), setting, what);
        if (testing::Test::HasFailure()) return;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, test::cases(1000));
}

// Many groups side by side, each link sick in turn: whatever is priced for a part of them stands for all.
TEST(FaultStudy, EveryLinkInTurnIsThePlainPath) {
  Setting setting;
  setting.model = test::llama(8, 1024, 16, 16, 4096, 32000);
  setting.system.device = test::round_device();
  setting.system.stack = test::plain_stack();
  setting.workload = test::training(2048, 32);
  const std::vector<std::vector<DimensionSpec>> fabrics = {
      {test::dimension("torus", DimensionKind::torus, {4, 4}, 100e9, 1e-6),
       test::dimension("ring", DimensionKind::ring, {2}, 25e9, 1e-6)},
      {test::dimension("switch", DimensionKind::switched, {8}, 300e9, 1e-6),
       test::dimension("rail", DimensionKind::switched, {4}, 50e9, 5e-6)}};
  int compared = 0, free = 0;
  for (const auto& dimensions : fabrics) {
    setting.system.fabric.dimensions = dimensions;
    const network::Fabric fabric(setting.system.fabric);
    Simulator fast(setting, exact());
    test::PlainSimulator slow(setting, exact());
    for (const ParallelPlan& plan :
         {test::plan_of(4, 1, 4, 2), test::plan_of(2, 2, 2, 4), test::plan_of(8, 1, 1, 4)}) {
      const Prediction healthy = fast.run(plan);
      ASSERT_EQ(healthy.status, Status::ok);
      for (std::size_t link = 0; link < fabric.links().size();
           link += test::size_of_case<std::size_t>(1, 13)) {
        FaultSet faults;
        faults.links = {{static_cast<std::int32_t>(link), 0.4, Seconds(link % 3 == 0 ? 2e-6 : 0)}};
        const Prediction sick = fast.rerun(faults);
        expect_same(sick, slow.run(plan, faults), setting, "link " + std::to_string(link));
        if (testing::Test::HasFailure()) return;
        if (sick.step_time == healthy.step_time) ++free;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, test::size_of_case(600, 600 / 13));
  EXPECT_GT(free, 0);
}

TEST(FaultStudy, RerunsDoNotDependOnWhatCameBefore) {
  for (std::uint64_t seed = 1; seed <= test::seeds(40); ++seed) {
    test::ScenarioGenerator generator(seed);
    const Setting setting = generator.setting(Phase::training);
    const network::Fabric fabric(setting.system.fabric);
    Simulator used(setting);
    const ParallelPlan plan = generator.plan(setting);
    const Prediction healthy = used.run(plan);
    if (healthy.status != Status::ok) continue;
    for (int i = 0; i < 12; ++i) {
      const FaultSet faults = random_faults(generator, fabric, Phase::training);
      Simulator fresh(setting);
      (void)fresh.run(plan);
      const Prediction a = used.rerun(faults), b = fresh.rerun(faults), c = used.rerun(faults);
      EXPECT_EQ(a.status, b.status) << test::describe(seed, plan);
      EXPECT_EQ(a.step_time, b.step_time) << test::describe(seed, plan);
      EXPECT_EQ(a.step_time, c.step_time) << test::describe(seed, plan);
      const Prediction direct = fresh.run(plan, faults);
      EXPECT_EQ(a.step_time, direct.step_time) << test::describe(seed, plan);
    }
    EXPECT_EQ(used.rerun({}).step_time, healthy.step_time);
  }
}

/// Plans of the same degrees, which share what their layers take under a draw, one after the other as in a sweep.
std::vector<ParallelPlan> related_plans(const ParallelPlan& plan) {
  std::vector<ParallelPlan> plans;
  for (const std::int32_t zero : {0, 1, 2, 3}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      for (const ScheduleKind schedule :
           {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
            ScheduleKind::zero_bubble, ScheduleKind::dualpipe}) {
        plans.push_back(plan);
        plans.back().zero_stage = zero;
        plans.back().recompute = recompute;
        plans.back().schedule = schedule;
        plans.back().virtual_stages = schedule == ScheduleKind::interleaved ? 2 : 1;
      }
    }
  }
  return plans;
}

TEST(FaultStudy, PlansThatShareLayersTakeWhatEachTakesAlone) {
  int compared = 0;
  for (std::uint64_t seed = 1; compared < test::cases(3000) && seed < 2000; ++seed) {
    test::ScenarioGenerator generator(seed + 70000);
    const Setting setting = generator.setting(Phase::training);
    const network::Fabric fabric(setting.system.fabric);
    std::vector<FaultSet> draws;
    for (int i = 0; i < 8; ++i) draws.push_back(random_faults(generator, fabric, Phase::training));
    Simulator used(setting);
    for (const ParallelPlan& plan : related_plans(generator.plan(setting))) {
      if (used.run(plan).status != Status::ok) continue;
      Simulator fresh(setting);
      for (const FaultSet& faults : draws) {
        const Prediction shared = used.rerun(faults), alone = fresh.run(plan, faults);
        ASSERT_EQ(shared.status, alone.status) << test::describe(seed, plan);
        ASSERT_EQ(shared.step_time, alone.step_time) << test::describe(seed, plan);
        for (const TimeClass c : enum_values<TimeClass>())
          ASSERT_EQ(shared.breakdown[c], alone.breakdown[c]) << test::describe(seed, plan) << name_of(c);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, test::cases(3000));
}

TEST(FaultStudy, ALinkWithoutTrafficCostsExactlyNothing) {
  // Tensor groups are the four inner rings, pipeline stages follow each other along the outer ones.
  Setting setting;
  setting.model = test::llama(8, 1024, 16, 16, 4096, 32000);
  setting.system.device = test::round_device();
  setting.system.stack = test::plain_stack();
  setting.system.fabric.dimensions = {test::dimension("inner", DimensionKind::ring, {4}, 100e9, 1e-6),
                                      test::dimension("outer", DimensionKind::ring, {4}, 25e9, 1e-6)};
  setting.workload = test::training(2048, 32);
  const network::Fabric fabric(setting.system.fabric);
  Simulator simulator(setting);
  const ParallelPlan plan = test::plan_of(4, 1, 4, 1);
  const Prediction healthy = simulator.run(plan);
  ASSERT_EQ(healthy.status, Status::ok);
  int free = 0, costly = 0;
  for (std::size_t link = 0; link < fabric.links().size(); ++link) {
    FaultSet faults;
    faults.links = {{static_cast<std::int32_t>(link), 0.1, Seconds(0)}};
    const double slowdown = simulator.rerun(faults).step_time / healthy.step_time - 1;
    EXPECT_GE(slowdown, 0);
    if (slowdown == 0) ++free;
    if (slowdown > 0) ++costly;
    // The pipeline is an open chain over the four inner rings: the links that close the outer rings carry
    // nothing (ranks 12..15 to 0..3 and back).
    const network::Link& l = fabric.links()[link];
    const bool closing = l.dimension == 1 && std::abs(l.source - l.destination) == 12;
    if (closing) {
      EXPECT_EQ(slowdown, 0);
    }
  }
  EXPECT_GE(free, 8);
  EXPECT_GT(costly, 0);
}

// With one stage every device waits for the sick one in every layer, and the optimizer of the sick one is the
// last: the step takes what it takes on a machine all of whose devices are sick.
TEST(FaultStudy, ASickDeviceOnOneStageIsAMachineOfSickDevices) {
  int compared = 0;
  for (std::uint64_t seed = 1; compared < test::cases(60) && seed < 3000; ++seed) {
    test::ScenarioGenerator generator(seed);
    const Setting setting = generator.setting(Phase::training);
    ParallelPlan plan = generator.plan(setting);
    if (plan.pipeline != 1) continue;
    Simulator simulator(setting);
    if (simulator.run(plan).status != Status::ok) continue;
    const double compute = generator.between(0.3, 1), hbm = generator.between(0.3, 1);
    FaultSet faults;
    faults.devices = {
        {static_cast<std::int32_t>(generator.below(static_cast<std::uint64_t>(plan.gpus()))), compute, hbm}};
    Setting sick = setting;
    sick.system.device.sm.clock = compute * sick.system.device.sm.clock;
    sick.system.device.hbm.bandwidth_per_stack = hbm * sick.system.device.hbm.bandwidth_per_stack;
    const Prediction expected = Simulator(sick).run(plan);
    EXPECT_NEAR(simulator.rerun(faults).step_time / expected.step_time, 1, 1e-12)
        << test::describe(seed, plan);
    ++compared;
  }
  EXPECT_GE(compared, test::cases(60));
}

TEST(FaultStudy, ASickDeviceSlowsButNoMoreThanAMachineOfThem) {
  int compared = 0;
  for (std::uint64_t seed = 1; compared < test::cases(60) && seed < 3000; ++seed) {
    test::ScenarioGenerator generator(seed);
    const Setting setting = generator.setting(Phase::training);
    const ParallelPlan plan = generator.plan(setting);
    if (plan.pipeline == 1) continue;
    Simulator simulator(setting);
    const Prediction healthy = simulator.run(plan);
    if (healthy.status != Status::ok) continue;
    const double share = generator.between(0.3, 1);
    FaultSet one, all;
    for (std::int32_t rank = 0; rank < plan.gpus(); ++rank) all.devices.push_back({rank, share, share});
    one.devices = {all.devices[generator.below(all.devices.size())]};
    const double slow = simulator.rerun(one).step_time.value(),
                 slowest = simulator.rerun(all).step_time.value();
    EXPECT_GE(slow, healthy.step_time.value() * (1 - 1e-12)) << test::describe(seed, plan);
    EXPECT_LE(slow, slowest * (1 + 1e-12)) << test::describe(seed, plan);
    ++compared;
  }
  EXPECT_GE(compared, test::cases(60));
}

}  // namespace
}  // namespace shardscape
