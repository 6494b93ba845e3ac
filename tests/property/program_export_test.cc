// Do the traces of an executed step take the executed time when they are replayed?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/simulate.h"
#include "engine/timeline/program_export.h"
#include "engine/timeline/replay.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape::timeline {
namespace {

/// Replayed over executed, -1 where the plan is none.
double round_trip(const Setting& setting, const ParallelPlan& plan, const FaultSet& faults = {}) {
  Details details;
  details.want_programs = true;
  Simulator simulator(setting, {.time_infeasible = true, .mode = ExecutionMode::flattened});
  const Prediction out = simulator.run(plan, faults, &details);
  if (!details.programs) return -1;
  const ProgramExport exported(*details.programs, setting.training_host().step_fixed.value());
  ReplayOptions options;
  options.stack = setting.system.stack.communication;
  options.memory_rate = setting.system.device.hbm_peak();
  options.node = setting.system.device.node;
  options.faults = faults;  // sick devices slow copies; what else they slow is part of the durations
  const auto result = replay(exported.all(), network::Fabric(setting.system.fabric), options);
  EXPECT_TRUE(result.has_value()) << result.error().front().message;
  return result ? result->step_time / out.step_time.value() : 0;
}

constexpr double kTolerance = 1e-3;

/// How far the executed time moves when devices run faster or slower by parts in 10^10: groups that contend
/// for links drift apart or stay together by chance, so that some steps have no sharper time than this.
double uncertainty(const Setting& setting, const ParallelPlan& plan, const FaultSet& faults) {
  Simulator simulator(setting, {.time_infeasible = true, .mode = ExecutionMode::flattened});
  const double time = simulator.run(plan, faults).step_time.value();
  double most = 0;
  for (int trial = 0; trial < 8; ++trial) {
    FaultSet shaken = faults;
    for (std::int32_t rank = 0; rank < plan.gpus(); ++rank) {
      const double share = 1 - 1e-10 * ((rank * 7 + trial * 5) % 11);
      shaken.devices.push_back({rank, share, share});
    }
    most = std::max(most, std::abs(simulator.run(plan, shaken).step_time.value() / time - 1));
  }
  return most;
}

void expect_exact(double ratio, const Setting& setting, const ParallelPlan& plan, const FaultSet& faults,
                  std::uint64_t seed) {
  if (std::abs(ratio - 1) <= kTolerance) return;
  EXPECT_NEAR(ratio, 1, 2 * uncertainty(setting, plan, faults)) << test::describe(seed, plan);
}

TEST(ProgramExport, RandomPlansTakeTheirExecutedTime) {
  int plans = 0, faulty = 0, exact = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(60); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = random.setting(Phase::training);
    setting.model.layers = std::min<std::int64_t>(setting.model.layers, 8);
    setting.workload.global_batch = std::min<std::int64_t>(setting.workload.global_batch, 32);
    for (int i = 0; i < 3; ++i) {
      const ParallelPlan plan = random.plan(setting);
      FaultSet faults;
      if (random.below(3) == 0) {
        const auto ranks = static_cast<std::uint64_t>(plan.gpus());
        faults.devices = {
            {static_cast<std::int32_t>(random.below(ranks)), random.between(0.3, 1), random.between(0.3, 1)}};
        const network::Fabric fabric(setting.system.fabric);
        if (!fabric.links().empty()) {
          const auto link = static_cast<std::int32_t>(random.below(fabric.links().size()));
          faults.links = {{link, random.between(0.2, 1), {}}};
        }
      }
      const double ratio = round_trip(setting, plan, faults);
      if (ratio < 0) continue;
      ++plans;
      faulty += faults.empty() ? 0 : 1;
      exact += std::abs(ratio - 1) < 1e-9 ? 1 : 0;
      expect_exact(ratio, setting, plan, faults, seed);
    }
  }
  EXPECT_GE(plans, test::at_least(51));
  EXPECT_GE(faulty, test::at_least(11));
  if (test::all_seeds()) {
    EXPECT_GT(exact, 0.9 * plans);
  }
}

/// A torus of 4 x 4 with a ring of four of them outside, or nodes of 8 behind switches that reduce.
Setting cluster(bool torus, test::ScenarioGenerator& random) {
  Setting s = random.setting(Phase::training);
  s.model = test::llama(8, 1024, 16, 4, 2816, 32000);
  s.workload = test::training(1024, 32);
  s.system.stack.partition = PartitionRule::balanced;
  s.system.fabric = {"cluster", {}};
  auto& dimensions = s.system.fabric.dimensions;
  if (torus) {
    dimensions.push_back(test::dimension("torus", DimensionKind::torus, {4, 4}, 100e9, 5e-7));
    dimensions.push_back(test::dimension("ring", DimensionKind::ring, {4}, 25e9, 2e-6));
  } else {
    dimensions.push_back(test::dimension("nvlink", DimensionKind::switched, {8}, 300e9, 5e-7));
    dimensions.back().in_network_reduction = random.coin();
    dimensions.push_back(test::dimension("rail", DimensionKind::switched, {4}, 25e9, 1e-6));
  }
  dimensions.back().scope = LinkScope::scale_out;
  return s;
}

TEST(ProgramExport, PlansOnClustersTakeTheirExecutedTime) {
  int plans = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(24); ++seed) {
    test::ScenarioGenerator random(seed + 1000);
    const Setting setting = cluster(seed % 2 == 0, random);
    const ParallelPlan plan = random.plan(setting);
    const double ratio = round_trip(setting, plan);
    if (ratio < 0) continue;
    ++plans;
    expect_exact(ratio, setting, plan, {}, seed + 1000);
  }
  EXPECT_GE(plans, test::at_least(13));
}

// Exchanges in unequal parts are messages in the traces: by the library, by kernels that send a copy to each rank or
// node, and where an expert tensor group splits the experts.
TEST(ProgramExport, UnequalExpertsTakeTheirExecutedTime) {
  for (const ExpertDispatcher dispatcher : {ExpertDispatcher::library, ExpertDispatcher::kernels}) {
    for (const std::int32_t expert : {2, 4, 8}) {
      Setting setting;
      setting.model = test::llama_of_experts(4, 4, 1);
      setting.system.device = test::round_device();
      setting.system.stack = test::plain_stack();
      setting.system.stack.partition = PartitionRule::balanced;
      setting.system.stack.communication.call = Seconds(1e-5);
      setting.system.stack.communication.rank_step = Seconds(2e-6);
      setting.system.stack.experts.dispatch = dispatcher;
      setting.system.fabric = {"nodes",
                               {test::dimension("inner", DimensionKind::switched, {4}, 300e9, 1e-6),
                                test::dimension("outer", DimensionKind::switched, {2}, 50e9, 2e-6)}};
      setting.system.fabric.dimensions.back().scope = LinkScope::scale_out;
      setting.workload = test::training(1024, 16);
      setting.workload.expert_load.distribution = LoadDistribution::power_law;
      setting.workload.expert_load.exponent = 0.8;
      ParallelPlan plan = test::plan_of(1, 1, 1, 8);
      plan.expert = expert;
      plan.expert_tensor = expert == 2 ? 2 : 1;
      EXPECT_NEAR(round_trip(setting, plan), 1, kTolerance) << name_of(dispatcher) << ' ' << expert;
    }
  }
}

}  // namespace
}  // namespace shardscape::timeline
