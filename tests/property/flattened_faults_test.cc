// Do sick devices cost in flattened mode what follows from the machine, and what the hierarchical mode says
// where its assumptions hold?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/network/fabric/fabric.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape {
namespace {

Prediction predict(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode,
                   const FaultSet& faults = {}) {
  return Simulator(setting, {.time_infeasible = true, .mode = mode}).run(plan, faults);
}

/// A link for each pair of four ranks, a host that is never late: nothing contends.
Setting pairs_setting() {
  Setting setting;
  setting.model = test::llama(8, 1024, 16, 4, 4096, 32000);
  setting.system.device = test::round_device();
  setting.system.fabric = {"pairs",
                           {test::dimension("links", DimensionKind::fully_connected, {4}, 50e9, 1e-6)}};
  setting.system.stack = test::plain_stack();
  setting.workload = test::training(1024, 32);
  return setting;
}

/// A late device finds the messages of its peers waiting, which the hierarchical mode has it wait for:
/// executed steps are shorter by up to the communication. `more`: by how much they may be longer, relative.
void expect_within(const Prediction& executed, const Prediction& h, double more, const std::string& what) {
  const Breakdown& b = h.breakdown;
  const Seconds communication = b[TimeClass::tensor_comm] + b[TimeClass::context_comm] +
                                b[TimeClass::data_comm] + b[TimeClass::pipeline_comm];
  EXPECT_LE(executed.step_time, (1 + more) * h.step_time) << what;
  EXPECT_GE(executed.step_time, h.step_time - communication - 0.01 * h.step_time) << what;
}

bool timed(const Prediction& p) { return p.status == Status::ok || p.status == Status::memory; }

// A machine all of whose devices are sick alike is a machine of slower devices, where nothing is hidden: what
// is hidden where is decided by the times of healthy devices.
TEST(FlattenedFaults, AMachineOfSickDevicesIsASlowerMachine) {
  int compared = 0;
  for (std::uint64_t seed = 1; compared < test::cases(40) && seed < 400; ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = random.setting(Phase::training);
    setting.model.layers = std::min<std::int64_t>(setting.model.layers, 8);
    setting.workload.global_batch = std::min<std::int64_t>(setting.workload.global_batch, 16);
    setting.system.fabric = test::crossbar(setting.system.fabric.size(), 50e9, 1e-6);
    setting.system.stack.communication.tensor_overlap = 0;
    setting.system.stack.communication.context_overlap = 0;
    setting.system.stack.communication.data_overlap = 0;
    setting.system.stack.communication.gather_overlap = 0;
    const ParallelPlan plan = random.plan(setting);
    const double compute = random.between(0.3, 1), hbm = random.between(0.3, 1);
    FaultSet all;
    for (std::int32_t rank = 0; rank < plan.gpus(); ++rank) all.devices.push_back({rank, compute, hbm});
    Setting slower = setting;
    slower.system.device.sm.clock = compute * slower.system.device.sm.clock;
    slower.system.device.hbm.bandwidth_per_stack = hbm * slower.system.device.hbm.bandwidth_per_stack;
    const Prediction sick = predict(setting, plan, ExecutionMode::flattened, all);
    if (!timed(sick)) continue;
    const Prediction expected = predict(slower, plan, ExecutionMode::flattened);
    EXPECT_NEAR(sick.step_time / expected.step_time, 1, 1e-6) << test::describe(seed, plan);
    ++compared;
  }
  EXPECT_GE(compared, test::cases(40));
}

// Forwards send to the next stage, backwards to the one before: a link that is sick one way slows those that take it.
// Left out is dualpipe, whose pairs send two messages the same way at once.
TEST(FlattenedFaults, MessagesMindWhichWayALinkIsSick) {
  const Setting setting = pairs_setting();
  const network::Fabric fabric(setting.system.fabric);
  std::vector<std::int32_t> path;
  for (const ScheduleKind kind : enum_values<ScheduleKind>()) {
    if (kind == ScheduleKind::dualpipe) continue;
    ParallelPlan plan = test::plan_of(1, 1, 4, 1);
    plan.schedule = kind;
    if (kind == ScheduleKind::interleaved) plan.virtual_stages = 2;
    const Prediction well = predict(setting, plan, ExecutionMode::hierarchical);
    for (const auto& [from, to] : {std::pair(0, 1), {1, 0}, {2, 3}, {3, 2}}) {
      path.clear();
      fabric.append_route(from, to, path);
      FaultSet sick;
      sick.links.push_back({path.front(), 0.01, Seconds(0), false});
      const Prediction h = predict(setting, plan, ExecutionMode::hierarchical, sick),
                       f = predict(setting, plan, ExecutionMode::flattened, sick);
      ASSERT_TRUE(timed(h) && timed(f));
      EXPECT_GT(f.step_time, 1.01 * well.step_time) << name_of(kind) << ' ' << from << ' ' << to;
      EXPECT_NEAR(h.step_time / f.step_time, 1, 0.01) << name_of(kind) << ' ' << from << ' ' << to;
    }
  }
}

// One axis at a time the peers
// of a sick device wait for it wherever they meet, as the hierarchical mode has it. Chunks of an interleaved
// schedule are uneven (embedding, head), which that mode averages over a stage.
TEST(FlattenedFaults, OneSickDeviceCostsWhatTheHierarchicalModeSays) {
  Setting setting = pairs_setting();
  setting.system.stack.communication.call = Seconds(5e-6);
  std::vector<ParallelPlan> plans = {test::plan_of(4, 1, 1, 1), test::plan_of(1, 4, 1, 1),
                                     test::plan_of(1, 1, 1, 4)};
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble}) {
    plans.push_back(test::plan_of(1, 1, 4, 1));
    plans.back().schedule = kind;
  }
  for (const ParallelPlan& plan : plans) {
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      for (const DeviceFault& fault : {DeviceFault{rank, 0.5, 1}, DeviceFault{rank, 1, 0.4}}) {
        FaultSet sick;
        sick.devices = {fault};
        const Prediction h = predict(setting, plan, ExecutionMode::hierarchical, sick);
        const Prediction f = predict(setting, plan, ExecutionMode::flattened, sick);
        EXPECT_GT(f.step_time, predict(setting, plan, ExecutionMode::flattened).step_time);
        expect_within(f, h, 0.002, test::describe(0, plan) + ", rank " + std::to_string(rank));
      }
    }
  }
}

// A device at half its clock in stage 2 of 4 slows what that stage does: the step grows by its share of the
// microbatches, less than if every stage were slow, in both modes alike.
TEST(FlattenedFaults, ASlowDeviceSlowsItsStageOnly) {
  Setting setting;
  setting.model = test::llama(8, 1024, 16, 4, 4096, 1000);
  setting.system.device = test::round_device();
  setting.system.fabric = test::crossbar(16, 100e9, 1e-6);
  setting.system.stack = test::plain_stack();
  setting.workload = test::training(1024, 16);
  const ParallelPlan plan = test::plan_of(2, 1, 4, 2);
  const std::int32_t stride = 16 / 4;  // the pipeline is the outermost axis
  FaultSet one, all;
  one.devices = {{2 * stride, 0.5, 1}};
  for (std::int32_t rank = 0; rank < 16; ++rank) all.devices.push_back({rank, 0.5, 1});
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    const double healthy = predict(setting, plan, mode).step_time.value();
    const double slow = predict(setting, plan, mode, one).step_time.value();
    const double slowest = predict(setting, plan, mode, all).step_time.value();
    EXPECT_GT(slow, 1.2 * healthy);
    EXPECT_LT(slow, 0.97 * slowest);
  }
  const double h = predict(setting, plan, ExecutionMode::hierarchical, one).step_time.value();
  EXPECT_NEAR(predict(setting, plan, ExecutionMode::flattened, one).step_time.value() / h, 1, 0.02);
}

// Random plans of all axes on nodes of four and a ring.
TEST(FlattenedFaults, RandomPlansStayCloseToTheHierarchicalMode) {
  int compared = 0;
  for (std::uint64_t seed = 1; compared < test::cases(30) && seed < 300; ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting;
    setting.model = test::llama(8, 1024, 16, 4, 4096, 32000);
    setting.system.device = test::round_device();
    setting.system.fabric = {"nodes",
                             {test::dimension("inner", DimensionKind::switched, {4}, 300e9, 1e-6),
                              test::dimension("outer", DimensionKind::ring, {4}, 50e9, 2e-6)}};
    setting.system.fabric.dimensions.back().scope = LinkScope::scale_out;
    setting.system.stack = test::plain_stack();
    setting.system.stack.communication.context_overlap = 0.8;
    setting.system.stack.communication.data_overlap = 0.5;
    setting.system.stack.host.forward_layer = Seconds(1e-4);
    setting.workload = test::training(1024, 64);
    ParallelPlan plan = random.plan(setting);
    plan.order = kDefaultRankOrder;
    if (plan.schedule == ScheduleKind::interleaved) continue;
    FaultSet sick;
    sick.devices = {
        {static_cast<std::int32_t>(random.below(16)), random.between(0.4, 0.9), random.between(0.4, 0.9)}};
    const Prediction h = predict(setting, plan, ExecutionMode::hierarchical, sick);
    if (!timed(h)) continue;
    const Prediction f = predict(setting, plan, ExecutionMode::flattened, sick);
    // What the modes differ by without faults is no affair of the sick device.
    const double gap = predict(setting, plan, ExecutionMode::flattened).step_time /
                           predict(setting, plan, ExecutionMode::hierarchical).step_time -
                       1;
    expect_within(f, h, 0.05 + std::max(0.0, gap), test::describe(seed, plan));
    ++compared;
  }
  EXPECT_GE(compared, test::cases(20));
}

// Under dualpipe a stage and its mirror gather updated weights together, of which as much lies beside the first forward
// on either: a sick link of one of them must not tell them apart, else they would wait for each other for ever.
TEST(FlattenedFaults, ASickLinkStopsNoPlanThatRunsBothWays) {
  int compared = 0;
  for (std::uint64_t seed = 1; compared < test::cases(30) && seed < 300; ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting;
    setting.model = test::llama(8, 1024, 16, 4, 4096, 32000);
    setting.system.device = test::round_device();
    setting.system.fabric = test::crossbar(16, 10e9, 1e-6);
    setting.system.stack = test::plain_stack();
    setting.system.stack.communication.gather_overlap = 0.2;  // less than the gather takes
    setting.system.stack.communication.bucket = setting.system.stack.communication.zero_bucket = Bytes(5e6);
    setting.workload = test::training(1024, 64);
    ParallelPlan plan;
    plan.pipeline = random.pick({2, 4});
    plan.tensor = random.pick({1, 2});
    plan.context = random.pick({1, 2});
    plan.data = 16 / (plan.pipeline * plan.tensor * plan.context);
    plan.zero_stage = random.pick({1, 2});
    plan.schedule = ScheduleKind::dualpipe;
    FaultSet sick;
    sick.links = {{static_cast<std::int32_t>(random.below(32)), 0.1, Seconds(0), false}};
    const Prediction healthy = predict(setting, plan, ExecutionMode::flattened);
    if (!timed(healthy)) continue;
    const Prediction slowed = predict(setting, plan, ExecutionMode::flattened, sick);
    ASSERT_TRUE(timed(slowed)) << test::describe(seed, plan);
    EXPECT_GE(slowed.step_time, 0.99 * healthy.step_time) << test::describe(seed, plan);
    ++compared;
  }
  EXPECT_GE(compared, test::cases(30));
}

}  // namespace
}  // namespace shardscape
