// Hierarchical against flattened mode where hosts launch ahead within a pass, and where ranks of a context group drift
// apart because its hops are unlike.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::modes_drift {
namespace {

Prediction in_mode(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode) {
  return Simulator(setting, {.reference = false, .time_infeasible = true, .mode = mode}).run(plan);
}

double ratio(const Setting& setting, const ParallelPlan& plan) {
  const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
  const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
  EXPECT_EQ(f.status == Status::ok || f.status == Status::memory, true) << name_of(f.reason);
  EXPECT_NEAR(h.breakdown.total() / h.step_time, 1, 1e-9);
  return h.step_time / f.step_time;
}

Setting setting_of(std::int64_t layers, std::int64_t vocabulary) {
  Setting s;
  s.model = test::llama(layers, 4096, 32, 8, 14336, vocabulary);
  s.system.device = test::round_device();
  s.system.fabric = {"nodes",
                     {test::dimension("inner", DimensionKind::switched, {8}, 300e9, 1e-6),
                      test::dimension("outer", DimensionKind::switched, {2}, 25e9, 2e-6)}};
  s.system.fabric.dimensions.back().scope = LinkScope::scale_out;
  s.system.stack = test::plain_stack();
  s.workload = test::training(2048, 32);
  return s;
}

TEST(ModesDrift, TheHostIsAheadWithinAPassAlike) {
  // A head that takes as long as many blocks: from such hosts that no layer waits for to such that every block does.
  const Setting plain = setting_of(8, 512000);
  for (const double launches : {1e-4, 3e-3, 6e-3, 1.2e-2}) {
    for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
                                    ScheduleKind::zero_bubble, ScheduleKind::dualpipe}) {
      Setting setting = plain;
      setting.system.stack.host.forward_layer = Seconds(launches);
      setting.system.stack.host.backward_layer = Seconds(2 * launches);
      ParallelPlan plan = test::plan_of(1, 1, 4, 4);
      plan.schedule = kind;
      if (kind == ScheduleKind::interleaved) plan.virtual_stages = 2;
      SCOPED_TRACE(test::describe(0, plan) + " launches " + std::to_string(launches));
      EXPECT_NEAR(ratio(setting, plan), 1, 0.01);
    }
  }
}

TEST(ModesDrift, PassesRoundDomainsTakeAsLongAsTheyDelay) {
  // Context groups of 2 to 8 members in each of two nodes; nothing else is on their links.
  for (const std::int32_t context : {4, 8, 16}) {
    for (const double overlap : {0.0, 0.5, 1.0}) {
      Setting setting = setting_of(24, 32000);
      setting.system.stack.communication.context_overlap = overlap;
      ParallelPlan plan = test::plan_of(1, context, 1, 16 / context);
      // Members of a group in both nodes, whatever its size.
      plan.order = {PlanAxis::data, PlanAxis::context, PlanAxis::tensor, PlanAxis::pipeline};
      SCOPED_TRACE(test::describe(0, plan) + " overlap " + std::to_string(overlap));
      EXPECT_NEAR(ratio(setting, plan), 1, 0.03);
      // The slow hop is busy for all passes of all layers: a lower bound of every step.
      const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
      const double message = 2.0 * 2 * 1024 * 2048 / context;  // keys and values, bf16
      const double passes = (1 + 2) * 24.0 * (context - 1) * h.microbatches;
      EXPECT_GE(h.step_time.value(), passes * message / 25e9);
    }
  }
}

TEST(ModesDrift, ExchangesOfUnlikeMessagesDriftTogether) {
  // With recomputing, a layer's backward sends keys and values again, and gradients with them: twice as much.
  for (const std::int32_t context : {8, 16}) {
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      for (const double overlap : {0.0, 0.5}) {
        Setting setting = setting_of(24, 32000);
        setting.system.stack.communication.context_overlap = overlap;
        ParallelPlan plan = test::plan_of(1, context, 1, 16 / context);
        plan.recompute = recompute;
        plan.order = {PlanAxis::data, PlanAxis::context, PlanAxis::tensor, PlanAxis::pipeline};
        SCOPED_TRACE(test::describe(0, plan) + " overlap " + std::to_string(overlap));
        EXPECT_NEAR(ratio(setting, plan), 1, 0.03);
      }
    }
  }
}

TEST(ModesDrift, ShortPassesGoOnFromDomainToDomain) {
  // Messages that take less on links than to begin and to arrive, so that no rank waits behind a slow hop for long;
  // rings of 12 and 16 in domains of 8 (8 and 4 members), of 12 in domains of 6 and of 24 in domains of 8.
  struct Ring {
    std::int64_t inner, outer;
    std::int32_t members;
  };
  for (const Ring& ring : {Ring{8, 3, 12}, {8, 2, 16}, {6, 2, 12}, {8, 3, 24}}) {
    for (const double latency : {2e-6, 4e-5}) {
      for (const double call : {0.0, 2e-5}) {
        Setting setting = setting_of(24, 32000);
        setting.workload = test::training(24 * 16, 24);
        setting.system.fabric.dimensions[0].shape = {ring.inner};
        setting.system.fabric.dimensions[1].shape = {ring.outer};
        setting.system.fabric.dimensions[1].latency = Seconds(latency);
        setting.system.stack.communication.call = Seconds(call);
        const auto gpus = static_cast<std::int32_t>(ring.inner * ring.outer);
        const ParallelPlan plan = test::plan_of(1, ring.members, 1, gpus / ring.members);
        SCOPED_TRACE(test::describe(0, plan) + " domains of " + std::to_string(ring.inner) + " latency " +
                     std::to_string(latency) + " call " + std::to_string(call));
        EXPECT_NEAR(ratio(setting, plan), 1, 0.03);
      }
    }
  }
}

TEST(ModesDrift, RingsWhoseStepsDoNotFitIntoDomainsSpareNothing) {
  // Members three ranks apart in domains of eight: no smaller group stays inside of one. Prices only err upwards.
  Setting setting = setting_of(24, 32000);
  setting.model = test::llama(24, 3072, 24, 24, 8448, 32256);
  setting.workload = test::training(24 * 16, 24);
  setting.system.fabric.dimensions[1].shape = {3};
  for (const std::int32_t members : {2, 4, 8}) {
    const ParallelPlan plan = test::plan_of(3, members, 1, 8 / members);
    SCOPED_TRACE(test::describe(0, plan));
    EXPECT_GE(ratio(setting, plan), 0.97);
  }
}

/// A torus of 16 ranks, whose hops are all alike within a dimension, in two domains.
Setting torus_setting() {
  Setting setting = setting_of(16, 32000);
  setting.system.fabric = {"torus",
                           {test::dimension("inner", DimensionKind::torus, {4, 4}, 100e9, 5e-7),
                            test::dimension("outer", DimensionKind::ring, {2}, 25e9, 2e-6)}};
  setting.system.fabric.dimensions[1].scope = LinkScope::scale_out;
  return setting;
}

TEST(ModesDrift, RanksThatDoNotDriftCallTogether) {
  // Tensor groups of one stage share links, and traffic goes beside all passes. Hops of the context groups are alike,
  // so that their ranks keep step: calls of all tensor groups begin together and cost each other all that they can.
  for (const std::int32_t tensor : {4, 8}) {
    Setting setting = torus_setting();
    setting.system.stack.communication.data_overlap = 1;
    setting.workload = test::training(4096, 32);
    ParallelPlan plan = test::plan_of(tensor, 2, 1, 16 / tensor);
    plan.zero_stage = 3;
    plan.order = {PlanAxis::data, PlanAxis::context, PlanAxis::tensor, PlanAxis::pipeline};
    SCOPED_TRACE(test::describe(0, plan));
    EXPECT_NEAR(ratio(setting, plan), 1, 0.015);
  }
}

}  // namespace
}  // namespace shardscape::modes_drift
