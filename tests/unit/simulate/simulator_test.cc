// Verdicts, memory peak and explanations of whole predictions.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/network/fabric/fabric.h"
#include "engine/network/fabric/faulty_fabric.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

Setting small(std::int64_t ranks) {
  Setting s;
  s.model = test::llama(8, 1024, 16, 8, 3072, 32000);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks);
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, 32);
  return s;
}

TEST(SimulatorVerdict, IndivisibleAndUnsupportedHaveNoNumbers) {
  Setting setting = small(3);
  Prediction out = Simulator(setting).run(test::plan_of(3, 1, 1, 1));
  EXPECT_EQ(out.status, Status::indivisible);
  EXPECT_EQ(out.reason, Reason::heads_by_tensor);
  EXPECT_EQ(out.memory_peak.value(), 0);
  EXPECT_EQ(out.step_time.value(), 0);
  setting = small(1);
  setting.workload.precision = PolicyName::fp4;
  out = Simulator(setting).run(test::plan_of(1, 1, 1, 1));
  EXPECT_EQ(out.status, Status::unsupported);
  EXPECT_EQ(out.reason, Reason::precision);
}

TEST(SimulatorVerdict, MemoryIsAValueWithNumbers) {
  Setting setting = small(1);
  setting.system.device.hbm.capacity_per_stack = Bytes(1e6);
  const Prediction untimed = Simulator(setting).run(test::plan_of(1, 1, 1, 1));
  EXPECT_EQ(untimed.status, Status::memory);
  EXPECT_EQ(untimed.reason, Reason::memory_capacity);
  EXPECT_GT(untimed.memory_peak, setting.system.device.memory_capacity());
  EXPECT_EQ(untimed.step_time.value(), 0);
  SimulateOptions options;
  options.time_infeasible = true;
  const Prediction timed = Simulator(setting, options).run(test::plan_of(1, 1, 1, 1));
  EXPECT_EQ(timed.status, Status::memory);
  EXPECT_GT(timed.step_time.value(), 0);
}

TEST(SimulatorVerdict, CapacityItselfStillFits) {
  Setting setting = small(1);
  setting.system.device.hbm.stacks = 1;
  const Bytes need = Simulator(setting).run(test::plan_of(1, 1, 1, 1)).memory_peak;
  setting.system.device.hbm.capacity_per_stack = need;
  EXPECT_EQ(Simulator(setting).run(test::plan_of(1, 1, 1, 1)).status, Status::ok);
  setting.system.device.hbm.capacity_per_stack = Bytes(std::nextafter(need.value(), 0));
  EXPECT_EQ(Simulator(setting).run(test::plan_of(1, 1, 1, 1)).status, Status::memory);
}

TEST(SimulatorVerdict, ZeroBubbleWithoutPipelineIsJustAccumulation) {
  const Setting setting = small(2);
  ParallelPlan plan = test::plan_of(1, 1, 1, 2);
  const Prediction usual = Simulator(setting).run(plan);
  plan.schedule = ScheduleKind::zero_bubble;
  for (const bool reference : {false, true}) {
    const Prediction out = Simulator(setting, {reference, false}).run(plan);
    EXPECT_EQ(out.status, Status::ok);
    EXPECT_NEAR(out.step_time / usual.step_time, 1, 1e-12);
  }
}

TEST(SimulatorMemory, PeakIsTheFullestStage) {
  for (const ScheduleKind schedule : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
    ParallelPlan plan = test::plan_of(2, 1, 4, 2);
    plan.schedule = schedule;
    Details details;
    const Setting setting = small(16);
    const Prediction out = Simulator(setting).run(plan, {}, &details);
    ASSERT_EQ(details.stage_memory.size(), 4U);
    for (const MemoryUse& use : details.stage_memory) EXPECT_LE(use.total(), out.memory_peak);
    const MemoryUse& peak = details.stage_memory[static_cast<std::size_t>(out.peak_stage)];
    EXPECT_EQ(peak.total().value(), out.memory_peak.value());
    EXPECT_EQ(out.memory.total().value(), out.memory_peak.value());
  }
}

TEST(SimulatorFaults, IdleLinkCostsNothing) {
  // A pipeline of 4 on a ring of 4: pairs 0-1, 1-2, 2-3 carry the boundaries (links 0..5), the pair 3-0 that
  // closes the ring (links 6 and 7) carries nothing.
  Setting setting = small(4);
  setting.system.fabric.dimensions = {test::dimension("ring", DimensionKind::ring, {4}, 10e9)};
  const ParallelPlan plan = test::plan_of(1, 1, 4, 1);
  Simulator simulator(setting);
  const double healthy = simulator.run(plan).step_time.value();
  for (std::int32_t link = 0; link < 8; ++link) {
    SCOPED_TRACE(link);
    const double sick = simulator.run(plan, {{{link, 0.1, Seconds(1e-3)}}}).step_time.value();
    if (link < 6) {
      EXPECT_GT(sick, healthy);
    } else {
      EXPECT_EQ(sick, healthy);
    }
  }
  EXPECT_EQ(simulator.run(plan).step_time.value(), healthy);  // healed
}

// Two stages of tensor pairs on a ring of 4: the links between ranks 2 and 3 carry stage 1 only, which
// becomes as slow as on a machine whose links are all like that.
TEST(SimulatorFaults, ASickLinkSlowsTheStageThatSendsOverIt) {
  Setting setting = small(4);
  setting.system.fabric.dimensions = {test::dimension("ring", DimensionKind::ring, {4}, 10e9)};
  Setting slow = setting;
  slow.system.fabric.dimensions = {test::dimension("ring", DimensionKind::ring, {4}, 5e9)};
  const network::Fabric fabric(setting.system.fabric);
  FaultSet sick;
  network::add_fault(sick, fabric, {fabric.find_link(2, 3), 0.5, {}}, network::FaultDirections::both);
  const ParallelPlan plan = test::plan_of(2, 1, 2, 1);
  for (const bool reference : {false, true}) {
    const SimulateOptions options{.reference = reference, .time_infeasible = true};
    Details well, ill, all_slow;
    Simulator(setting, options).run(plan, {}, &well);
    Simulator(setting, options).run(plan, sick, &ill);
    Simulator(slow, options).run(plan, {}, &all_slow);
    EXPECT_EQ(ill.stage_forward[0].value(), well.stage_forward[0].value());
    EXPECT_EQ(ill.stage_backward[0].value(), well.stage_backward[0].value());
    EXPECT_NEAR(ill.stage_forward[1].value(), all_slow.stage_forward[1].value(), 1e-12);
    EXPECT_NEAR(ill.stage_backward[1].value(), all_slow.stage_backward[1].value(), 1e-12);
    EXPECT_GT(ill.stage_forward[1], well.stage_forward[1]);
  }
}

// The same link carries both stages where their tensor groups lie across each other: 0 and 2, 1 and 3.
TEST(SimulatorFaults, ASickLinkSlowsStagesThatShareIt) {
  Setting setting = small(4);
  setting.system.fabric.dimensions = {test::dimension("ring", DimensionKind::ring, {4}, 10e9)};
  const network::Fabric fabric(setting.system.fabric);
  ParallelPlan plan = test::plan_of(2, 1, 2, 1);
  plan.order = {PlanAxis::pipeline, PlanAxis::tensor, PlanAxis::context, PlanAxis::data};
  FaultSet sick;
  network::add_fault(sick, fabric, {fabric.find_link(1, 2), 0.5, {}}, network::FaultDirections::both);
  Simulator simulator(setting, {.time_infeasible = true});
  Details well, ill;
  simulator.run(plan, {}, &well);
  simulator.run(plan, sick, &ill);
  for (const std::size_t stage : {0U, 1U}) EXPECT_GT(ill.stage_forward[stage], well.stage_forward[stage]);
}

/// Sums of the rows of the operator table.
struct Table {
  double device = 0, recompute = 0, links = 0, step = 0;
};

Table sum(const std::vector<OperatorRow>& rows) {
  Table t;
  for (const OperatorRow& row : rows) {
    const double seconds = row.count * row.time.value();
    (row.phase == "step"        ? t.step
     : row.bound == "link"      ? t.links
     : row.phase == "recompute" ? t.recompute
                                : t.device) += seconds;
  }
  return t;
}

TEST(Explain, TrainingRowsAddUpToTheBreakdown) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const auto& plan_shape :
         {test::plan_of(2, 2, 1, 2), test::plan_of(4, 1, 2, 1), test::plan_of(2, 2, 2, 1)}) {
      ParallelPlan plan = plan_shape;
      plan.recompute = recompute;
      plan.sequence_parallel = true;
      SCOPED_TRACE(test::describe(0, plan));
      const Setting setting = small(8);
      Details details;
      const Prediction out = Simulator(setting).run(plan, {}, &details);
      ASSERT_EQ(out.status, Status::ok);
      const Table table = sum(details.operators);
      EXPECT_NEAR(table.device / out.breakdown[TimeClass::compute].value(), 1, 1e-12);
      EXPECT_NEAR(table.step / out.breakdown[TimeClass::optimizer].value(), 1, 1e-12);
      EXPECT_NEAR(table.recompute, out.breakdown[TimeClass::recompute].value(),
                  1e-12 * out.step_time.value());
      EXPECT_NEAR(
          table.links /
              (out.breakdown[TimeClass::tensor_comm] + out.breakdown[TimeClass::context_comm]).value(),
          1, 1e-12);
    }
  }
}

TEST(Explain, InferenceRowsAddUpToTheBreakdown) {
  Setting setting = small(8);
  setting.workload = test::inference(1024, 100, 8);
  Details details;
  const Prediction out = Simulator(setting).run(test::plan_of(2, 2, 2, 1), {}, &details);
  ASSERT_EQ(out.status, Status::ok);
  const Table table = sum(details.operators);
  EXPECT_NEAR(table.device / out.breakdown[TimeClass::compute].value(), 1, 1e-12);
  EXPECT_NEAR(
      table.links / (out.breakdown[TimeClass::tensor_comm] + out.breakdown[TimeClass::context_comm]).value(),
      1, 1e-12);
}

}  // namespace
}  // namespace shardscape
