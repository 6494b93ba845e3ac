// Does the traffic of the axes agree with the time that the same traffic takes where nothing else costs
// anything?
#include "engine/step/training/sent_in_step.h"

#include <gtest/gtest.h>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr double kBandwidth = 100e9;

Setting plain_setting(WorkloadSpec workload, std::int64_t ranks) {
  Setting s;
  s.model = test::llama(8, 1024, 16, 4, 4096, 32000);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, kBandwidth);
  s.system.stack = test::plain_stack();
  s.workload = workload;
  return s;
}

struct GroupOutcome {
  Prediction prediction;
  GroupBytes bytes;
};

GroupOutcome outcome_of(const Setting& setting, const ParallelPlan& plan) {
  Simulator simulator(setting, {.time_infeasible = true});
  Details details;
  const Prediction prediction = simulator.run(plan, {}, &details);
  EXPECT_EQ(prediction.status, Status::ok) << name_of(prediction.reason);
  return {prediction, details.group_bytes};
}

void expect_bytes_take(Bytes bytes, Seconds time) {
  EXPECT_GT(bytes, Bytes(0));
  EXPECT_NEAR(bytes.value(), time.value() * kBandwidth, 1e-9 * bytes.value());
}

// On one stage over a free crossbar, whatever an axis sends takes bytes / bandwidth, and nothing hides it.
TEST(GroupBytes, AreTheCommunicationTimeOnAFreeCrossbar) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const std::int32_t zero : {0, 1, 2, 3}) {
      for (const bool sequence_parallel : {false, true}) {
        SCOPED_TRACE(std::string(name_of(recompute)) + " zero " + std::to_string(zero) +
                     (sequence_parallel ? " sp" : ""));
        ParallelPlan plan = test::plan_of(4, 2, 1, 2);
        plan.recompute = recompute;
        plan.zero_stage = zero;
        plan.sequence_parallel = sequence_parallel;
        const GroupOutcome outcome = outcome_of(plain_setting(test::training(4096, 16), 16), plan);
        expect_bytes_take(outcome.bytes[ParallelGroup::tensor],
                          outcome.prediction.breakdown[TimeClass::tensor_comm]);
        expect_bytes_take(outcome.bytes[ParallelGroup::context],
                          outcome.prediction.breakdown[TimeClass::context_comm]);
        expect_bytes_take(outcome.bytes[ParallelGroup::data_shard],
                          outcome.prediction.breakdown[TimeClass::data_comm]);
        EXPECT_EQ(outcome.bytes[ParallelGroup::pipeline], Bytes(0));
      }
    }
  }
}

TEST(GroupBytes, InferenceLikewise) {
  const GroupOutcome outcome =
      outcome_of(plain_setting(test::inference(512, 64, 8), 8), test::plan_of(4, 1, 1, 2));
  expect_bytes_take(outcome.bytes[ParallelGroup::tensor],
                    outcome.prediction.breakdown[TimeClass::tensor_comm]);
  EXPECT_EQ(outcome.bytes[ParallelGroup::data_shard], Bytes(0));
}

TEST(GroupBytes, PipelineSendsTheBoundaryOfEveryMicrobatch) {
  // 16 sequences over dp = 2: 8 microbatches of 1 x 4096 x 1024 bf16 values.
  const Setting setting = plain_setting(test::training(4096, 16), 4);
  ParallelPlan plan = test::plan_of(1, 1, 2, 2);
  const double boundary = 4096.0 * 1024 * 2;
  EXPECT_DOUBLE_EQ(outcome_of(setting, plan).bytes[ParallelGroup::pipeline].value(), 8 * boundary);
  EXPECT_FALSE(outcome_of(setting, plan).bytes.pipeline_wraps);
  plan.schedule = ScheduleKind::interleaved;
  plan.virtual_stages = 2;
  EXPECT_DOUBLE_EQ(outcome_of(setting, plan).bytes[ParallelGroup::pipeline].value(), 2 * 8 * boundary);
  EXPECT_TRUE(outcome_of(setting, plan).bytes.pipeline_wraps);
}

TEST(GroupBytes, ScatteredBoundariesMoveTrafficToTheTensorGroup) {
  Setting setting = plain_setting(test::training(4096, 16), 8);
  const ParallelPlan plan = test::plan_of(4, 1, 2, 1);
  const GroupBytes whole = outcome_of(setting, plan).bytes;
  setting.system.stack.communication.scatter_boundaries = true;
  const GroupBytes parts = outcome_of(setting, plan).bytes;
  EXPECT_DOUBLE_EQ(parts[ParallelGroup::pipeline].value(), whole[ParallelGroup::pipeline].value() / 4);
  // 3/4 of each boundary is gathered, on the way forward and on the way back.
  EXPECT_DOUBLE_EQ(parts[ParallelGroup::tensor].value(),
                   whole[ParallelGroup::tensor].value() + 2 * 0.75 * whole[ParallelGroup::pipeline].value());
}

TEST(SimulatorPlacement, ASymmetryOfTheFabricChangesNothing) {
  const Setting setting = plain_setting(test::training(4096, 16), 8);
  const ParallelPlan plan = test::plan_of(2, 1, 2, 2);
  Simulator plain(setting, {.time_infeasible = true});
  Simulator turned(setting, {.time_infeasible = true, .placement = {3, 4, 5, 6, 7, 0, 1, 2}});
  EXPECT_EQ(plain.run(plan).step_time, turned.run(plan).step_time);
}

}  // namespace
}  // namespace shardscape
