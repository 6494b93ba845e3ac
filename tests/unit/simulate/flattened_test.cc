// Does flattened mode give the times that follow from the ingredients by hand, and does it agree with the
// hierarchical mode where that one's assumptions hold?
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/network/fabric/faulty_fabric.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

using test::plan_of;

Prediction predict_step(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode,
                        const FaultSet& faults = {}, Details* details = nullptr) {
  Simulator simulator(setting, {.time_infeasible = true, .mode = mode});
  return simulator.run(plan, faults, details);
}

/// A small GPT on a crossbar, a stack without costs of its own.
Setting small_setting(std::int64_t ranks, std::int64_t batch) {
  Setting s;
  s.model = test::gpt(8, 1024, 16, 32000, 2048);
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, 100e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.workload = test::training(1024, batch);
  return s;
}

/// Torus of 4 x 4 nodes within rings of four, as the 64-GPU study has it, or nodes of 8 behind a switch.
Setting cluster_setting(bool torus, std::int64_t ranks) {
  Setting s = small_setting(1, 64);
  s.model = test::llama(16, 2048, 32, 8, 5632, 32000);
  s.workload = test::training(2048, 64);
  s.system.fabric = {"cluster", {}};
  auto& dimensions = s.system.fabric.dimensions;
  if (torus) {
    dimensions.push_back(test::dimension("torus", DimensionKind::torus, {4, 4}, 100e9, 5e-7));
    if (ranks > 16)
      dimensions.push_back(test::dimension("ring", DimensionKind::ring, {ranks / 16}, 25e9, 2e-6));
  } else {
    dimensions.push_back(test::dimension("nvlink", DimensionKind::switched, {8}, 300e9, 5e-7));
    dimensions.push_back(test::dimension("rail", DimensionKind::switched, {ranks / 8}, 25e9, 1e-6));
  }
  if (dimensions.size() > 1) dimensions.back().scope = LinkScope::scale_out;
  StackProfile& stack = s.system.stack;
  stack.host.forward_layer = Seconds(2e-4);
  stack.host.backward_layer = Seconds(4e-4);
  stack.host.per_collective = Seconds(1e-5);
  stack.host.step_fixed = Seconds(1e-2);
  stack.communication.call = Seconds(1e-5);
  stack.communication.rank_step = Seconds(5e-6);
  stack.communication.local_copy = 1.5;
  stack.communication.scale_up_fraction = 0.75;
  stack.communication.scale_out_fraction = 0.8;
  stack.communication.context_overlap = 0.8;
  stack.communication.bucket = Bytes(100e6);
  return s;
}

double gap(const Setting& setting, const ParallelPlan& plan) {
  const Prediction h = predict_step(setting, plan, ExecutionMode::hierarchical);
  const Prediction f = predict_step(setting, plan, ExecutionMode::flattened);
  EXPECT_TRUE(h.status == Status::ok || h.status == Status::memory) << name_of(h.reason);
  EXPECT_NEAR(f.breakdown.total().value(), f.step_time.value(), 1e-9 * f.step_time.value());
  return f.step_time / h.step_time - 1;
}

// One rank: nothing but operators, in both modes the same sum.
TEST(Flattened, ASingleRankIsTheSumOfItsOperators) {
  const Setting setting = small_setting(1, 4);
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    ParallelPlan plan = plan_of(1, 1, 1, 1);
    plan.recompute = recompute;
    const Prediction h = predict_step(setting, plan, ExecutionMode::hierarchical);
    const Prediction f = predict_step(setting, plan, ExecutionMode::flattened);
    EXPECT_NEAR(f.step_time.value(), h.step_time.value(), 1e-12 * h.step_time.value());
    EXPECT_NEAR(f.breakdown[TimeClass::compute].value(), h.breakdown[TimeClass::compute].value(), 1e-9);
    EXPECT_NEAR(f.breakdown[TimeClass::recompute].value(), h.breakdown[TimeClass::recompute].value(), 1e-9);
    EXPECT_NEAR(f.mfu, h.mfu, 1e-12);
  }
}

// Equal groups in lock-step: every call of a tensor pair takes its closed form, so both modes add up the same
// numbers.
TEST(Flattened, TensorPairsTakeTheirClosedForm) {
  Setting setting = small_setting(2, 4);
  setting.system.stack.communication.call = Seconds(1e-5);
  setting.system.stack.communication.rank_step = Seconds(3e-6);
  setting.system.stack.communication.local_copy = 1.5;
  for (const bool sequence_parallel : {false, true}) {
    ParallelPlan plan = plan_of(2, 1, 1, 1);
    plan.sequence_parallel = sequence_parallel;
    EXPECT_NEAR(gap(setting, plan), 0, 1e-9);
    const Prediction f = predict_step(setting, plan, ExecutionMode::flattened);
    EXPECT_GT(f.breakdown[TimeClass::tensor_comm], Seconds(0));
  }
}

// Two stages without costs of transfer: m microbatches take the slower stage m times and the other stage's
// share of one, which is what the pipeline pass computes.
TEST(Flattened, TwoStagesTakeThePipelinesTime) {
  Setting setting = small_setting(2, 8);
  setting.system.fabric = test::crossbar(2, 1e18, 0);
  for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
    ParallelPlan plan = plan_of(1, 1, 2, 1);
    plan.schedule = kind;
    EXPECT_NEAR(gap(setting, plan), 0, 1e-9);
  }
}

// Gathers and scatters of ZeRO-3 outlast the passes P that they lie beside: of each of them they share the last
// o P, of which compute loses 1 - h, so that the step is shorter by o h times what all passes take: in both modes
// without what the host's lead over the layers before saves an embedding that computes less than it launches.
TEST(Flattened, OverlapHidesTrafficBesideThePassAsItRuns) {
  Setting s = small_setting(2, 8);
  s.system.fabric = test::crossbar(2, 1e9, 1e-6);
  s.system.stack.zero2_gradients = Zero2Gradients::per_microbatch;
  s.system.stack.host.forward_layer = s.system.stack.host.backward_layer = Seconds(1e-4);
  s.system.stack.communication.data_hidden = 0.4;
  ParallelPlan plan = plan_of(1, 1, 1, 2);
  plan.zero_stage = 3;
  Seconds waits[2];
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    s.system.stack.communication.data_overlap = 0;
    const Prediction none = predict_step(s, plan, mode);
    const Breakdown& b = none.breakdown;
    const Seconds passes = b[TimeClass::compute] + b[TimeClass::recompute] + b[TimeClass::host];
    waits[static_cast<std::size_t>(mode)] = b[TimeClass::host];
    ASSERT_GT(b[TimeClass::data_comm], passes);
    for (const double overlap : {0.001, 0.01, 0.2, 1.0}) {
      s.system.stack.communication.data_overlap = overlap;
      const Seconds step = predict_step(s, plan, mode).step_time;
      EXPECT_NEAR((none.step_time - step) / (0.4 * overlap * passes), 1, 1e-9) << overlap;
    }
  }
  EXPECT_GT(waits[0], Seconds(0));
  EXPECT_NEAR(waits[0] / waits[1], 1, 1e-9);
}

struct TablePlan {
  bool torus;
  std::int32_t ranks, tensor, context, pipeline, data;
  std::int32_t zero = 0;
  Recompute recompute = Recompute::none;
  bool sequence_parallel = false;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  std::int32_t virtual_stages = 1;
  RankOrder order = kDefaultRankOrder;
};

// 36 plans over all axes, schedules and orders. Each share of communication stays where the hierarchical
// passes have it: at its place in the pass, contending with its siblings alone.
TEST(Flattened, AgreesWithTheHierarchicalModeOnPlansOfAllAxes) {
  constexpr RankOrder kData = {PlanAxis::data, PlanAxis::tensor, PlanAxis::context, PlanAxis::pipeline};
  constexpr RankOrder kPipelineIn = {PlanAxis::tensor, PlanAxis::pipeline, PlanAxis::context, PlanAxis::data};
  constexpr auto kFull = Recompute::full, kSelective = Recompute::selective, kNone = Recompute::none;
  constexpr auto kInterleaved = ScheduleKind::interleaved, kGpipe = ScheduleKind::gpipe,
                 kPlain = ScheduleKind::one_f_one_b;
  std::vector<TablePlan> plans;
  for (const bool torus : {true, false}) {
    for (const std::int32_t ranks : {16, 64}) {
      const std::int32_t d = ranks / 16;
      plans.push_back({torus, ranks, 1, 1, 1, ranks});
      plans.push_back({torus, ranks, 1, 1, 4, ranks / 4, 1});
      plans.push_back({torus, ranks, 4, 1, 4, d, 1, kFull, true});
      plans.push_back({torus, ranks, 8, 1, 1, 2 * d, 2, kSelective, true});
      plans.push_back({torus, ranks, 2, 1, 4, 2 * d, 0, kFull, false, kGpipe});
      plans.push_back({torus, ranks, 2, 2, 2, 2 * d, 1, kNone, true, kInterleaved, 4});
      plans.push_back({torus, ranks, 4, 1, 2, 2 * d, 0, kSelective, true, kPlain, 1, kData});
      plans.push_back({torus, ranks, 4, 1, 4, d, 0, kFull, true, kInterleaved, 2, kPipelineIn});
      plans.push_back({torus, ranks, 2, 4, 1, 2 * d, 0, kFull, true});
    }
  }
  EXPECT_GE(plans.size(), 36U);
  for (const TablePlan& t : plans) {
    ParallelPlan plan = plan_of(t.tensor, t.context, t.pipeline, t.data);
    plan.zero_stage = t.zero;
    plan.recompute = t.recompute;
    plan.sequence_parallel = t.sequence_parallel;
    plan.schedule = t.schedule;
    plan.virtual_stages = t.virtual_stages;
    plan.order = t.order;
    const double difference = gap(cluster_setting(t.torus, t.ranks), plan);
    EXPECT_LT(std::abs(difference), 0.05) << (t.torus ? "torus, " : "nodes, ") << test::describe(0, plan);
  }
}

// Half the bandwidth of a link that a tensor group uses slows its calls; less than the hierarchical mode
// says, in which all members of a call begin together: here those beyond the sick link come late, and what is
// sent over it begins meanwhile. A dead link sends its messages the other way round.
TEST(Flattened, FaultsActOnTheFabric) {
  Setting setting = small_setting(4, 4);
  setting.system.fabric = {"ring", {test::dimension("ring", DimensionKind::ring, {4}, 50e9, 1e-6)}};
  setting.system.stack.communication.algorithms = {Algorithm::ring};
  ParallelPlan plan = plan_of(4, 1, 1, 1);
  const network::Fabric fabric(setting.system.fabric);
  FaultSet sick;
  network::add_fault(sick, fabric, {fabric.find_link(0, 1), 0.5, {}}, network::FaultDirections::one);
  const Prediction well = predict_step(setting, plan, ExecutionMode::flattened);
  const Prediction slow = predict_step(setting, plan, ExecutionMode::flattened, sick);
  const Prediction hierarchical = predict_step(setting, plan, ExecutionMode::hierarchical, sick);
  EXPECT_GT(slow.step_time, well.step_time);
  EXPECT_LE(slow.step_time, hierarchical.step_time);
  EXPECT_GT(slow.step_time / hierarchical.step_time, 0.8);

  FaultSet removed;
  LinkFault dead{fabric.find_link(0, 1), 1, {}, true};
  network::add_fault(removed, fabric, dead, network::FaultDirections::both);
  const Prediction around = predict_step(setting, plan, ExecutionMode::flattened, removed);
  EXPECT_EQ(around.status, Status::ok);
  EXPECT_GT(around.step_time, predict_step(setting, plan, ExecutionMode::flattened).step_time);
}

// A sick link of one tensor group slows its stage; the others wait for that stage only, in both modes. Pairs:
// larger groups drift, see above.
TEST(Flattened, ASickTensorLinkSlowsOneStage) {
  Setting setting = cluster_setting(true, 64);
  setting.system.stack.communication.algorithms = {Algorithm::ring};
  ParallelPlan plan = plan_of(2, 1, 4, 8);
  plan.order = {PlanAxis::tensor, PlanAxis::context, PlanAxis::data, PlanAxis::pipeline};
  const network::Fabric fabric(setting.system.fabric);
  for (const std::int32_t stage : {0, 2}) {
    FaultSet sick;
    const LinkFault fault{fabric.find_link(16 * stage, 16 * stage + 1), 0.15, {}};
    network::add_fault(sick, fabric, fault, network::FaultDirections::both);
    const Prediction well = predict_step(setting, plan, ExecutionMode::hierarchical);
    const Prediction hierarchical = predict_step(setting, plan, ExecutionMode::hierarchical, sick);
    const Prediction flattened = predict_step(setting, plan, ExecutionMode::flattened, sick);
    EXPECT_GT(hierarchical.step_time / well.step_time, 1.1);
    EXPECT_NEAR(flattened.step_time / hierarchical.step_time, 1, 0.05) << stage;
  }
}

TEST(Flattened, ACutGroupIsUnreachable) {
  Setting setting = small_setting(2, 4);
  setting.system.fabric = {"ring", {test::dimension("ring", DimensionKind::ring, {2}, 50e9, 1e-6)}};
  const network::Fabric fabric(setting.system.fabric);
  FaultSet cut;
  for (std::size_t link = 0; link < fabric.links().size(); ++link)
    cut.links.push_back({static_cast<std::int32_t>(link), 1, {}, true});
  EXPECT_EQ(predict_step(setting, plan_of(2, 1, 1, 1), ExecutionMode::flattened, cut).status,
            Status::unreachable);
}

// 8 layers, 2 microbatches, a tensor pair: forward and backward of a block have 2 all-reduces of 2 x 2
// messages each, the embedding one, the head's backward one; every message is drained and received.
TEST(Flattened, EveryMessageIsExecuted) {
  Setting setting = small_setting(2, 2);
  setting.system.stack.communication.algorithms = {Algorithm::ring};
  Details details;
  predict_step(setting, plan_of(2, 1, 1, 1), ExecutionMode::flattened, {}, &details);
  const std::int64_t calls = 2 * (8 * 4 + 2);
  const std::int64_t messages = 4 * calls, entries = 2 * calls;
  EXPECT_GT(details.events, 2 * messages + entries);
  // Operators of a GPT block: 2 norms, 4 products, attention, activation and 2 residuals.
  const std::int64_t blocks = 2 * 2 * 2 * 8 * 10;
  EXPECT_GE(details.events, 2 * messages + entries + blocks);
  EXPECT_LE(details.events, 2 * messages + entries + blocks + 2 * 2 * 2 * 8);
}

}  // namespace
}  // namespace shardscape
