// No prediction lies below its floors: random models, machines, stacks and plans, with experts and without.
#include "engine/plan_floor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape {
namespace {

constexpr double kSumsRounded = 1e-12;

/// Least recomputation and ZeRO stage: what floors of a whole family are taken with.
ParallelPlan least_of_family(ParallelPlan plan) {
  plan.recompute = Recompute::none;
  plan.zero_stage = 0;
  return plan;
}

struct FloorsSeen {
  int plans = 0;
  double sharpest = 0;  ///< sum of floor over step
};

/// Holds a plan's step against its floors; nothing where it has no time.
void hold_floors(const Setting& setting, const ParallelPlan& plan, RankOrder other, FloorsSeen& seen) {
  const Prediction out = Simulator(setting, {.time_infeasible = true}).run(plan);
  if (out.status != Status::ok && out.status != Status::memory) return;
  const double step = out.step_time.value() * (1 + kSumsRounded);
  PlanFloor floor(setting);
  const ParallelPlan least = least_of_family(plan);
  const double coarse = floor.least(least, floor.without_calls(least));
  const double exact = floor.least(plan, floor.without_calls(plan));
  const double of_stage = floor.least_of_stage(plan, floor.without_calls(plan));
  EXPECT_GT(coarse, 0);
  EXPECT_LE(coarse, step);
  EXPECT_LE(exact, of_stage);
  EXPECT_LE(of_stage, step);
  std::vector<RankOrder> orders = {plan.order};
  const double called = floor.least(plan, floor.with_calls(plan, orders));
  EXPECT_LE(called, step);
  EXPECT_LE(floor.least_of_stage(plan, floor.with_calls(plan, orders)), step);
  EXPECT_GE(called, exact * (1 - kSumsRounded));
  // Of several orders the floor is that of all. Whether tokens are dispatched must be the same in them.
  ParallelPlan turned = plan;
  turned.order = other;
  if (model::layer_key(turned, 1).dispatches == model::layer_key(plan, 1).dispatches) {
    orders.push_back(other);
    const double of_both = floor.least(plan, floor.with_calls(plan, orders));
    EXPECT_LE(of_both, called * (1 + kSumsRounded));
    const Prediction there = Simulator(setting, {.time_infeasible = true}).run(turned);
    const bool timed = there.status == Status::ok || there.status == Status::memory;
    if (timed) {
      EXPECT_LE(of_both, there.step_time.value() * (1 + kSumsRounded));
    }
  }
  ++seen.plans;
  seen.sharpest += called / out.step_time.value();
}

RankOrder any_order(test::ScenarioGenerator& random) {
  return rank_order_of(static_cast<std::int32_t>(random.below(kRankOrders)));
}

/// Schedules that the generator of scenarios does not draw, and what heads may defer.
void draw_more(test::ScenarioGenerator& random, Setting& setting, ParallelPlan& plan) {
  setting.system.stack.head.deferred_weight_gradient = random.coin();
  setting.system.stack.head.deferral_limit = random.pick({0, 1, 3});
  if (plan.pipeline % 2 != 0 || random.below(4) != 0) return;
  plan.schedule = ScheduleKind::dualpipe;
  plan.virtual_stages = 1;
  plan.microbatch = 1;
  plan.zero_stage = std::min(plan.zero_stage, 1);
}

TEST(PlanFloor, NoStepIsShorter) {
  FloorsSeen seen;
  for (std::uint64_t seed = 1; seed <= test::seeds(150); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = random.setting(Phase::training);
    for (int i = 0; i < 12; ++i) {
      ParallelPlan plan = random.plan(setting);
      draw_more(random, setting, plan);
      SCOPED_TRACE(test::describe(seed, plan));
      hold_floors(setting, plan, any_order(random), seen);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GE(seen.plans, test::at_least(400));
  RecordProperty("mean_floor_of_step", std::to_string(seen.sharpest / seen.plans));
}

// Executed, hosts run ahead of their devices from layer to layer, and calls lie beside each other: what the floors say
// of those does not bind every execution. The chain of passes alone does: with no host, and no calls.
TEST(PlanFloor, NoExecutedStepIsShorterThanItsPasses) {
  FloorsSeen seen;
  for (std::uint64_t seed = 1; seed <= test::seeds(60); ++seed) {
    test::ScenarioGenerator random(seed);
    const Setting setting = random.setting(Phase::training);
    Setting of_devices = setting;
    of_devices.system.stack.host = {};
    PlanFloor floor(of_devices);
    Simulator simulator(setting, {.time_infeasible = true, .mode = ExecutionMode::flattened});
    for (int i = 0; i < 3; ++i) {
      const ParallelPlan plan = random.plan(setting);
      SCOPED_TRACE(test::describe(seed, plan));
      const Prediction out = simulator.run(plan);
      if (out.status != Status::ok && out.status != Status::memory) continue;
      const double least = floor.least_of_stage(plan, floor.without_calls(plan));
      EXPECT_GT(least, 0);
      EXPECT_LE(least, out.step_time.value() * (1 + kSumsRounded));
      ++seen.plans;
      seen.sharpest += least / out.step_time.value();
    }
  }
  EXPECT_GE(seen.plans, test::at_least(40));
  RecordProperty("mean_floor_of_executed_step", std::to_string(seen.sharpest / seen.plans));
}

/// Experts dealt over ranks, whose exchanges pairs of passes hide.
Setting setting_of_experts(test::ScenarioGenerator& random) {
  Setting s;
  s.model = test::llama(8, 1024, 16, 8, 4096, 32000);
  MixtureOfExperts moe;
  moe.experts = 16;
  moe.top_k = 2;
  moe.expert_ffn_hidden = 512;
  moe.first_dense_layers = 1;
  s.model.moe = moe;
  s.system.device = test::round_device();
  s.system.fabric = {
      "nodes", {test::dimension("inner", DimensionKind::switched, {8}, random.between(2e9, 300e9), 1e-6)}};
  s.system.stack = test::plain_stack();
  if (random.coin()) {  // exchanges that leave a domain of four, or not, by the order of ranks
    s.system.fabric.dimensions[0].shape = {4};
    s.system.fabric.dimensions.push_back(
        test::dimension("outer", DimensionKind::switched, {2}, random.between(1e9, 50e9), 1e-6));
    s.system.fabric.dimensions.back().scope = LinkScope::scale_out;
    s.system.stack.communication.overlapped_exchanges = OverlappedExchanges::between_domains;
  }
  s.system.stack.partition = PartitionRule::balanced;
  s.system.stack.communication.expert_overlap = random.pick({0.0, 0.5, 1.0});
  s.system.stack.communication.expert_hidden = random.pick({0.6, 1.0});
  const double host = random.pick({0.0, 1e-4, 3e-3});
  s.system.stack.host.forward_layer = Seconds(host);
  s.system.stack.host.backward_layer = Seconds(2 * host);
  s.workload = test::training(512, 64);
  if (random.coin()) {
    s.workload.expert_load.distribution = LoadDistribution::power_law;
    s.workload.expert_load.exponent = random.between(0.2, 1.5);
  }
  return s;
}

TEST(PlanFloor, NoStepOfExpertsIsShorter) {
  FloorsSeen seen;
  for (std::uint64_t seed = 1; seed <= test::seeds(400); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = setting_of_experts(random);
    setting.system.stack.zero_slice = Seconds(random.pick({0.0, 1e-5}));
    ParallelPlan plan = random.plan(setting);
    plan.expert = random.pick({1, 2, 4, 8});
    plan.microbatch = 1;
    draw_more(random, setting, plan);
    SCOPED_TRACE(test::describe(seed, plan) + " ep " + std::to_string(plan.expert));
    hold_floors(setting, plan, any_order(random), seen);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(seen.plans, test::at_least(100));
}

/// Four stages of equal blocks, one rank each, links that take no time to speak of.
Setting bare_pipeline() {
  Setting s;
  s.model = test::llama(16, 2048, 16, 16, 8192, 1000);
  s.system.device = test::round_device();
  s.system.device.hbm.capacity_per_stack *= 100;
  s.system.fabric = {"chain", {test::dimension("switch", DimensionKind::switched, {4}, 1e15, 0)}};
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, 16);
  return s;
}

// With nothing but passes and the optimizer in a step the chain is the step: what is left of it are the messages
// between stages, which the prediction says. (p - 1) / m of the work is bubble, so a floor that forgot it would lie 16
// % lower.
TEST(PlanFloor, IsTheStepWhereOnlyPassesTakeTime) {
  const Setting setting = bare_pipeline();
  for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
                                  ScheduleKind::zero_bubble}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      ParallelPlan plan;
      plan.pipeline = 4;
      plan.schedule = kind;
      plan.recompute = recompute;
      if (kind == ScheduleKind::interleaved) plan.virtual_stages = 2;
      const Prediction out = Simulator(setting).run(plan);
      ASSERT_EQ(out.status, Status::ok) << name_of(out.reason);
      const double passes =
          (out.step_time - out.breakdown[TimeClass::pipeline_comm] - out.breakdown[TimeClass::data_comm])
              .value();
      PlanFloor floor(setting);
      const double least = floor.least(plan, floor.without_calls(plan));
      EXPECT_LE(least, passes * (1 + 1e-6)) << name_of(kind) << name_of(recompute);
      EXPECT_GE(least, passes * 0.98) << name_of(kind) << name_of(recompute);
    }
  }
}

// A layer takes what its operators take, or its launches: by hand on one rank and one stage.
TEST(PlanFloor, OfOneStageIsTheSumOfItsPasses) {
  Setting setting = bare_pipeline();
  setting.system.fabric.dimensions.clear();
  setting.system.stack.host.forward_layer = Seconds(1);  // far beyond what any operator takes
  setting.system.stack.host.backward_layer = Seconds(3);
  setting.system.stack.host.step_fixed = Seconds(5);
  const ParallelPlan plan;
  PlanFloor floor(setting);
  // 16 blocks, embedding and head, forward and backward of 16 microbatches; and the optimizer, as it is predicted.
  const double optimizer = Simulator(setting).run(plan).breakdown[TimeClass::optimizer].value();
  EXPECT_NEAR(floor.least(plan, floor.without_calls(plan)), 16.0 * 18 * 4 + 5 + optimizer, 1e-6);
}

/// A setting with the values of its own that floors of a kind read.
Setting as_read(FloorKind kind, Setting setting) {
  setting.system = read_by_floor(kind, setting.system);
  setting.workload = read_by_floor(kind, setting.workload);
  return setting;
}

bool same_floors(const PassFloors& a, const PassFloors& b) {
  const auto same = [](const LayerFloor& one, const LayerFloor& other) {
    return one.forward == other.forward && one.backward == other.backward && one.input == other.input &&
           one.weight == other.weight;
  };
  return std::ranges::equal(a.alone, b.alone, same) && std::ranges::equal(a.paired, b.paired, same);
}

// What settings share is keyed by read_by_floor(): made from these values alone floors are what they are, to the bit.
TEST(PlanFloor, DependsOnWhatItReadsAlone) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(300); ++seed) {
    test::ScenarioGenerator random(seed);
    const Setting setting = seed % 2 == 0 ? random.setting(Phase::training) : setting_of_experts(random);
    const Setting passes = as_read(FloorKind::passes, setting), calls = as_read(FloorKind::calls, setting),
                  steps = as_read(FloorKind::steps, setting);
    PlanFloor floor(setting), of_passes(passes), of_calls(calls), of_steps(steps);
    for (int i = 0; i < 4; ++i) {
      const ParallelPlan plan = random.plan(setting);
      SCOPED_TRACE(test::describe(seed, plan));
      EXPECT_EQ(floor.possible(plan), of_steps.possible(plan));
      if (!floor.possible(plan)) continue;
      const std::vector<RankOrder> orders = {plan.order};
      const PassFloors bare = floor.without_calls(plan);
      EXPECT_TRUE(same_floors(bare, of_passes.without_calls(plan)));
      EXPECT_TRUE(same_floors(floor.with_calls(plan, orders), of_calls.with_calls(plan, orders)));
      EXPECT_EQ(floor.least(plan, bare), of_steps.least(plan, bare));
      ++plans;
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GE(plans, test::at_least(300));
}

// And settings that differ in what is not read are equal there: else nothing would be shared.
TEST(PlanFloor, SettingsThatDifferInWhatItDoesNotReadAreOne) {
  test::ScenarioGenerator random(1);
  const Setting setting = setting_of_experts(random);
  System capacity = setting.system, links = setting.system, partition = setting.system,
         other = setting.system;
  capacity.device.hbm.capacity_per_stack *= 2;
  links.fabric.dimensions[0].bandwidth *= 2;
  partition.stack.partition = PartitionRule::uniform;
  other.device.hbm.bandwidth_per_stack *= 2;
  for (const FloorKind kind : {FloorKind::passes, FloorKind::calls, FloorKind::steps}) {
    const System read = read_by_floor(kind, setting.system);
    EXPECT_EQ(read_by_floor(kind, capacity), read);
    EXPECT_EQ(read_by_floor(kind, links) == read, kind != FloorKind::calls);
    EXPECT_EQ(read_by_floor(kind, partition) == read, kind != FloorKind::steps);
    EXPECT_FALSE(read_by_floor(kind, other) == read);
  }
}

}  // namespace
}  // namespace shardscape
