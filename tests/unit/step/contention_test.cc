// Compares the contention of operations with the classes of the breakdown, where nothing hides.
#include "engine/step/training/contention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

Setting contended_setting(FabricSpec fabric) {
  Setting s;
  s.model = test::llama(16, 1024, 16, 4, 4096, 1000);
  s.system.device = test::round_device();
  s.system.fabric = std::move(fabric);
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, 16);
  return s;
}

Prediction timed_plan(const Setting& setting, const ParallelPlan& plan) {
  return Simulator(setting, {.reference = false, .time_infeasible = true}).run(plan);
}

TEST(Contention, IsWhatDataTrafficMeetsOnTheSameLinks) {
  // One port per rank: tensor and data groups share it. All data traffic D runs beside passes P in which tensor
  // calls take the share T / P, so that they meet for D T / P, in which each has half of the port: calls then take
  // twice as long. 0.9 of that is priced (kMet), 0.4 of what short calls are priced the mark (kCallsOpen). Backward
  // has twice the traffic and takes twice as long, with as many calls. Left out are the few calls of embedding and head
  // and what all of them take at the ranks. Where nothing overlaps, D and T are the exposed classes, and nothing
  // contends.
  Setting setting = contended_setting(test::crossbar(8, 50e9, 1e-6));
  setting.workload = test::training(8192, 16);
  ParallelPlan plan = test::plan_of(2, 1, 1, 4);
  plan.zero_stage = 3;
  const Prediction apart = timed_plan(setting, plan);
  EXPECT_EQ(apart.contended_share, 0);
  EXPECT_FALSE(apart.outside_domain());
  setting.system.stack.communication.data_overlap = 1;
  const Prediction together = timed_plan(setting, plan);
  const double step = together.step_time.value();
  const Breakdown& b = apart.breakdown;
  const double passes = (b.total() - b[TimeClass::data_comm] - b[TimeClass::optimizer]).value();
  const double most = b[TimeClass::data_comm].value() * b[TimeClass::tensor_comm].value() / passes;
  EXPECT_EQ(apart.contention, Seconds(0));
  EXPECT_LE(together.contention.value(), 0.9 * most);
  EXPECT_GE(together.contention.value(), 0.85 * 0.9 * most);
  EXPECT_NEAR(together.breakdown[TimeClass::tensor_comm].value(),
              (b[TimeClass::tensor_comm] + together.contention).value(), 1e-9 * step);
  EXPECT_NEAR(together.contended_share / (0.4 * together.contention.value() / step), 1, 0.05);
  EXPECT_EQ(together.outside_domain(), together.contended_share > kDomainBand);
}

TEST(Contention, DataTrafficOnItsOwnLinksMeetsNobody) {
  // Tensor groups inside nodes of two, data groups across: no link in common.
  Setting setting =
      contended_setting({"pairs",
                         {test::dimension("inner", DimensionKind::fully_connected, {2}, 300e9, 1e-6),
                          test::dimension("outer", DimensionKind::switched, {4}, 50e9, 1e-6)}});
  setting.system.stack.communication.data_overlap = 1;
  ParallelPlan plan = test::plan_of(2, 1, 1, 4);
  plan.zero_stage = 3;
  EXPECT_EQ(timed_plan(setting, plan).contended_share, 0);
}

TEST(Contention, GradientsBesideWeightGradientsMeetNoCalls) {
  // Under zero_bubble those of ZeRO-2 leave beside the gradients of weights, which call nobody.
  Setting setting = contended_setting(test::crossbar(8, 50e9, 1e-6));
  setting.system.stack.communication.data_overlap = 1;
  ParallelPlan plan = test::plan_of(2, 1, 2, 2);
  plan.zero_stage = 2;
  EXPECT_GT(timed_plan(setting, plan).contention, Seconds(0));
  plan.schedule = ScheduleKind::zero_bubble;
  EXPECT_EQ(timed_plan(setting, plan).contention, Seconds(0));
  plan.zero_stage = 3;
  EXPECT_GT(timed_plan(setting, plan).contention, Seconds(0));
}

TEST(Contention, GroupsOfOtherStagesTakeTurns) {
  // Eight ranks in a ring. Tensor pairs of neighbours have a link each way for themselves. Pairs four apart
  // with the stages in between (order pp-cp-dp-tp) cross the same four links, eight pairs' flows over eight
  // links each way: among all of them a pair gets a quarter of a link, among those of one stage (every fourth
  // rank) all of it; so at most three quarters of the bytes' time go. Executed the other stages are mostly at other
  // work.
  Setting setting =
      contended_setting({"ring", {test::dimension("ring", DimensionKind::ring, {8}, 50e9, 1e-9)}});
  ParallelPlan plan = test::plan_of(2, 1, 4, 1);
  EXPECT_EQ(timed_plan(setting, plan).contention, Seconds(0));
  plan.order = {PlanAxis::pipeline, PlanAxis::context, PlanAxis::data, PlanAxis::tensor};
  const Prediction far = timed_plan(setting, plan);
  const Seconds all_at_once = far.step_time - far.contention;
  EXPECT_LT(far.step_time, 0.95 * all_at_once);
  EXPECT_GE(far.step_time, 0.25 * all_at_once);
  EXPECT_NEAR(far.breakdown.total().value(), far.step_time.value(), 1e-9 * far.step_time.value());
  const Prediction executed =
      Simulator(setting, {.time_infeasible = true, .mode = ExecutionMode::flattened}).run(plan);
  EXPECT_GT(all_at_once, 1.1 * executed.step_time);
  // Every tensor call meets three others here, as far from a usual plan as it gets: a prediction that is over 5 % off
  // says so, and lies at most a quarter as far off as all at once.
  const double error = far.step_time / executed.step_time - 1;
  EXPECT_TRUE(far.outside_domain() || std::abs(error) < 0.05) << error;
  EXPECT_LT(std::abs(error), 0.25 * (all_at_once / executed.step_time - 1));
}

TEST(Contention, MessagesBetweenChunksAndHiddenTrafficCostEachOther) {
  // Two stages of two chunks, each rank with one port for both. Messages make the passes S longer: by so much the step
  // without data-parallel traffic is longer than over links that take no time. Passes hide H of the gathers: so much
  // less of them shows than where none may hide. In the H seconds the messages' share of what shows or is hidden is
  // S / (S + H), and so much of H is lost again: the step is S H / (S + H) longer than with both apart.
  const auto timed = [](double overlap, double bandwidth) {
    Setting setting = contended_setting(test::crossbar(4, bandwidth, 1e12 / bandwidth * 1e-9));
    setting.system.stack.communication.bucket = Bytes(1e6);
    setting.system.stack.communication.gather_overlap = overlap;
    ParallelPlan plan = test::plan_of(1, 1, 2, 2);
    plan.zero_stage = 1;
    plan.virtual_stages = 2;
    plan.schedule = ScheduleKind::interleaved;
    return timed_plan(setting, plan);
  };
  const auto without_data = [](const Prediction& p) {
    return (p.step_time - p.breakdown[TimeClass::data_comm]).value();
  };
  constexpr double kPort = 5e9;
  const Prediction apart = timed(0, kPort), beside = timed(0.2, kPort);
  const double messages = without_data(apart) - without_data(timed(0, 1e18));
  const double hidden =
      (apart.breakdown[TimeClass::data_comm] - beside.breakdown[TimeClass::data_comm]).value();
  ASSERT_GT(messages, 0);
  ASSERT_GT(hidden, 0);
  EXPECT_EQ(apart.contention, Seconds(0));
  const double cost = messages * hidden / (messages + hidden);
  EXPECT_NEAR(beside.contention.value() / cost, 1, 1e-6);
  EXPECT_NEAR((beside.step_time - apart.step_time).value() / (cost - hidden), 1, 1e-6);
}

TEST(Contention, MessagesMakeCallsLonger) {
  // Two stages of tensor pairs, each rank with one port for both: while a message is under way, each has half of the
  // port. Messages take M of a step of T seconds, two for each microbatch; calls, which are under way for the share
  // C / T of it, take M C / T longer, all of which is priced and half marked. Of a stage's 33 calls in a microbatch,
  // four of each of eight layers and one of an end of the model, that of the end is left out. Messages that block their
  // senders meet none, nor do those over links of their own.
  const auto timed = [](FabricSpec fabric, bool async, std::int32_t tensor = 2) {
    Setting setting = contended_setting(std::move(fabric));
    setting.system.stack.communication.pipeline_async = async;
    return timed_plan(setting, test::plan_of(tensor, 1, 2, 1));
  };
  constexpr double kPort = 50e9;
  const double bytes = 2.0 * 1024 * 1024;  // of a message: two for each feature of each token
  const Prediction meet = timed(test::crossbar(4, kPort), true),
                   block = timed(test::crossbar(4, kPort), false);
  const double alone = (meet.step_time - meet.contention).value();
  const double messages = 2 * 16 * bytes / kPort;
  const double calls = (meet.breakdown[TimeClass::tensor_comm] - meet.contention).value();
  ASSERT_GT(messages * calls / alone, 0.001 * alone);
  EXPECT_NEAR(meet.contention.value() / (messages * calls * 32 / 33 / alone), 1, 1e-6);
  EXPECT_NEAR(meet.contended_share / (0.5 * meet.contention.value() / alone), 1, 1e-6);
  EXPECT_EQ(block.contention, Seconds(0));
  const Prediction apart = timed({"pairs",
                                  {test::dimension("inner", DimensionKind::fully_connected, {2}, kPort),
                                   test::dimension("outer", DimensionKind::switched, {2}, kPort)}},
                                 true);
  EXPECT_GT(apart.breakdown[TimeClass::tensor_comm], Seconds(0));
  EXPECT_EQ(apart.contention, Seconds(0));
}

TEST(Contention, MessagesOfBothWaysMeet) {
  // Under dualpipe forwards of one way and backwards of the other leave a stage for the same neighbour. Half of what
  // messages show is added (kBothWays), half of that is marked; without calls nothing else meets.
  for (const bool async : {false, true}) {
    Setting setting = contended_setting(test::crossbar(4, 5e9));
    setting.system.stack.communication.pipeline_async = async;
    ParallelPlan plan = test::plan_of(1, 1, 4, 1);
    EXPECT_EQ(timed_plan(setting, plan).contention, Seconds(0));
    plan.schedule = ScheduleKind::dualpipe;
    const Prediction both = timed_plan(setting, plan);
    const double shown = both.breakdown[TimeClass::pipeline_comm].value(), added = both.contention.value();
    ASSERT_GT(shown, 0);
    EXPECT_NEAR(added / shown, 0.5, 1e-6);
    EXPECT_NEAR(both.contended_share / (0.5 * added / (both.step_time.value() - added)), 1, 1e-6);
  }
}

}  // namespace
}  // namespace shardscape
