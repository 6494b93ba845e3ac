// Hierarchical against flattened mode: equal where buckets of gradients are all that overlaps, within 5 % on
// random plans or said to be outside the domain; and no sick device makes a step shorter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape::laws_modes {
namespace {

Prediction in_mode(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode,
                   const FaultSet& faults = {}) {
  return Simulator(setting, {.reference = false, .time_infeasible = true, .mode = mode}).run(plan, faults);
}

bool has_time(const Prediction& p) { return p.status == Status::ok || p.status == Status::memory; }

Setting data_setting() {
  Setting s;
  s.model = test::llama(8, 4096, 32, 8, 14336, 128256);
  s.system.device = test::round_device();
  s.system.fabric = {"nodes",
                     {test::dimension("inner", DimensionKind::switched, {4}, 300e9, 1e-6),
                      test::dimension("outer", DimensionKind::switched, {4}, 25e9, 2e-6)}};
  s.system.fabric.dimensions.back().scope = LinkScope::scale_out;
  s.system.stack = test::plain_stack();
  s.system.stack.communication.call = Seconds(2e-5);
  s.workload = test::training(4096, 32);
  return s;
}

TEST(LawsModes, BucketsAreHiddenAlikeWhateverTheirSize) {
  // One axis, so that nothing contends; buckets from 25 MB to more than everything (8 GB), from none of the
  // backward to all of it, in every schedule. What is left is the host, which launches ahead when executed.
  for (const double bucket : {25e6, 100e6, 1e9, 4e9, 8e9}) {
    for (const double overlap : {0.0, 0.3, 0.8, 1.0}) {
      Setting setting = data_setting();
      setting.system.stack.communication.bucket = Bytes(bucket);
      setting.system.stack.communication.data_overlap = overlap;
      for (const std::int32_t zero : {0, 1}) {
        ParallelPlan plan = test::plan_of(1, 1, 1, 16);
        plan.zero_stage = zero;
        SCOPED_TRACE(test::describe(0, plan) + " bucket " + std::to_string(bucket) + " overlap " +
                     std::to_string(overlap));
        const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
        const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
        EXPECT_NEAR(h.step_time / f.step_time, 1, 1e-3);
        EXPECT_NEAR(h.breakdown[TimeClass::data_comm] / f.breakdown[TimeClass::data_comm], 1, 0.01);
      }
      for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b,
                                      ScheduleKind::interleaved, ScheduleKind::zero_bubble}) {
        ParallelPlan plan = test::plan_of(1, 1, 4, 4);
        plan.schedule = kind;
        if (kind == ScheduleKind::interleaved) plan.virtual_stages = 2;
        SCOPED_TRACE(test::describe(0, plan) + " bucket " + std::to_string(bucket) + " overlap " +
                     std::to_string(overlap));
        const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
        const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
        EXPECT_NEAR(h.step_time / f.step_time, 1, 0.02);
      }
    }
  }
}

TEST(LawsModes, StepsWaitForStagesThatLieAcrossNodes) {
  // Stages of three ranks on nodes of four: the first and the last lie inside a node, the others across two, so that
  // their gradients go over links a twelfth as fast. The step waits for these, though the first stage does not.
  for (const double overlap : {0.0, 0.8}) {
    Setting setting = data_setting();
    setting.system.fabric.dimensions.back().shape = {3};
    setting.system.stack.communication.bucket = Bytes(1e9);
    setting.system.stack.communication.data_overlap = overlap;
    for (const std::int32_t zero : {0, 1}) {
      ParallelPlan plan = test::plan_of(1, 1, 4, 3);
      plan.zero_stage = zero;
      setting.workload.global_batch = 24;
      SCOPED_TRACE(test::describe(0, plan) + " overlap " + std::to_string(overlap));
      const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
      const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
      // All stages are taken to be as slow, of which the first, whose own traffic is quick, ends last.
      EXPECT_GE(h.step_time / f.step_time, 1 - 1e-3);
      EXPECT_LE(h.step_time / f.step_time, 1.1);
      EXPECT_TRUE(h.outside_domain() || h.step_time <= 1.05 * f.step_time);
      // The whole machine as one node: what the slow links cost, by far the most of it.
      Setting quick = setting;
      quick.system.fabric.dimensions.back().bandwidth = BytesPerSecond(300e9);
      EXPECT_GT(h.step_time / in_mode(quick, plan, ExecutionMode::hierarchical).step_time, 1.02);
    }
  }
}

TEST(LawsModes, GathersOfWeightsAreHiddenAlike) {
  // Beside the first forward under ZeRO-1, on links from such that it hides everything to such that it hides little,
  // and beside every pass under ZeRO-3, where compute loses time to them.
  for (const double bandwidth : {300e9, 25e9, 2e9}) {
    for (const double share : {0.0, 0.23, 0.6, 1.0}) {
      for (const std::int32_t stages : {1, 4}) {
        for (const std::int32_t zero : {1, 3}) {
          Setting setting = data_setting();
          setting.system.fabric.dimensions.back().bandwidth = BytesPerSecond(bandwidth);
          setting.system.stack.communication.bucket = Bytes(1e9);
          setting.system.stack.communication.data_overlap = 1;
          setting.system.stack.communication.gather_overlap = share;
          setting.system.stack.communication.data_hidden = share;
          ParallelPlan plan = test::plan_of(1, 1, stages, 16 / stages);
          plan.zero_stage = zero;
          SCOPED_TRACE(test::describe(0, plan) + " bandwidth " + std::to_string(bandwidth) + " share " +
                       std::to_string(share));
          const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
          const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
          EXPECT_NEAR(h.step_time / f.step_time, 1, stages > 1 ? 0.02 : 2e-3);
        }
      }
    }
  }
}

TEST(LawsModes, BackwardsInOnePieceHideTheirCallsAlike) {
  // Under dualpipe most backwards run in one piece, in which a call lies beside the longer one of two products.
  for (const std::int32_t batch : {8, 32}) {
    double without = 1;  // messages between stages that meet are all that the modes differ by
    for (const double overlap : {0.0, 0.4, 0.8}) {
      Setting setting = data_setting();
      setting.system.stack.communication.tensor_overlap = overlap;
      setting.workload = test::training(4096, batch);
      ParallelPlan plan = test::plan_of(4, 1, 4, 1);
      plan.sequence_parallel = true;
      plan.schedule = ScheduleKind::dualpipe;
      SCOPED_TRACE(test::describe(0, plan) + " overlap " + std::to_string(overlap));
      const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
      const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
      EXPECT_NEAR(h.step_time / f.step_time, 1, 5e-3);
      if (overlap == 0) without = h.step_time / f.step_time;
      EXPECT_NEAR(h.step_time / f.step_time, without, 5e-4);
    }
  }
}

TEST(LawsModes, CallsAlongDimensionsMeetGathersOnOneOfThem) {
  // A tensor group over four nodes sends along one dimension at a time; gathers of weights beside it share the outer
  // one only, which each of its calls uses for a part of its time.
  for (const std::int32_t tensor : {8, 16}) {
    for (const bool parallel : {false, true}) {
      Setting setting = data_setting();
      setting.system.fabric.dimensions.back().shape = {2 * tensor / 4};
      setting.system.stack.communication.data_overlap = 1;
      ParallelPlan plan = test::plan_of(tensor, 1, 1, 2);
      plan.sequence_parallel = parallel;
      plan.zero_stage = 3;
      SCOPED_TRACE(test::describe(0, plan));
      const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
      const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
      EXPECT_NEAR(h.step_time / f.step_time, 1, 0.04);
    }
  }
}

TEST(LawsModes, MessagesThatMeetEachOtherAreSaid) {
  // Messages between stages of one layer a chunk, from such that are over long before the next one to such that take
  // longer than a pass: those meet on the way out of a stage. Either both modes agree, or the plan is marked.
  int meet = 0;
  for (const double bandwidth : {10e9, 3e9, 1e9}) {
    for (const std::int32_t stages : {2, 4}) {
      Setting setting = data_setting();
      setting.model = test::llama(16, 4096, 32, 8, 14336, 32000);
      setting.system.fabric = test::crossbar(stages, bandwidth, 2e-6);
      setting.system.stack.communication.pipeline_async = true;
      setting.workload = test::training(4096, 4 * stages);
      ParallelPlan plan = test::plan_of(1, 1, stages, 1);
      plan.schedule = ScheduleKind::interleaved;
      plan.virtual_stages = 16 / stages;
      const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
      const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
      const bool apart = std::abs(h.step_time / f.step_time - 1) > 0.01;
      EXPECT_TRUE(!apart || h.outside_domain()) << test::describe(0, plan) << " at " << bandwidth;
      meet += apart ? 1 : 0;
    }
  }
  EXPECT_GE(meet, 1);
}

TEST(LawsModes, TheLastBucketIsNeverHidden) {
  // However slow the backward, one bucket leaves when it has ended.
  Setting setting = data_setting();
  setting.system.stack.communication.data_overlap = 1;
  setting.system.stack.communication.bucket = Bytes(1e12);
  const ParallelPlan plan = test::plan_of(1, 1, 1, 16);
  const Seconds together =
      in_mode(setting, plan, ExecutionMode::hierarchical).breakdown[TimeClass::data_comm];
  setting.system.stack.communication.data_overlap = 0;
  const Seconds after = in_mode(setting, plan, ExecutionMode::hierarchical).breakdown[TimeClass::data_comm];
  EXPECT_GT(after, Seconds(0));
  EXPECT_NEAR(together / after, 1, 1e-12);
}

TEST(LawsModes, ASickDeviceNeverHelps) {
  int cases = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = random.setting(Phase::training);
    setting.model.layers = std::min<std::int64_t>(setting.model.layers, 16);
    setting.system.stack.communication.data_overlap = random.between(0.2, 1);
    const ParallelPlan plan = random.plan(setting);
    const Prediction healthy = in_mode(setting, plan, ExecutionMode::hierarchical);
    if (!has_time(healthy)) continue;
    for (const auto& [clock, hbm] : {std::pair{0.9, 1.0}, std::pair{1.0, 0.9}, std::pair{0.5, 0.6}}) {
      FaultSet sick;
      sick.devices = {
          {static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(plan.gpus()))), clock, hbm}};
      const Prediction slow = in_mode(setting, plan, ExecutionMode::hierarchical, sick);
      EXPECT_GE(slow.step_time.value(), healthy.step_time.value() * (1 - 1e-9)) << test::describe(seed, plan);
      ++cases;
    }
  }
  EXPECT_GE(cases, test::at_least(301));
}

TEST(LawsModes, RandomPlansAreWithinTheBandOrSaidToBeOutside) {
  // Llama-like models of 16 layers on nodes of eight and on a torus with rings, 32 GPUs, data overlapped or
  // not. The band of engine/README.md, Modes: 97 of 100 plans that are not marked differ by less than 5 %, none by 8.
  int plans = 0, marked = 0, close = 0;
  double most = 0;
  for (std::uint64_t seed = 0; seed < 400 && plans < test::cases(120); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = data_setting();
    setting.model = test::llama(16, 4096, 32, 8, 14336, 32000);
    const bool torus = seed % 2 == 0;
    setting.system.fabric =
        torus ? FabricSpec{"torus",
                           {test::dimension("inner", DimensionKind::torus, {4, 4}, 100e9, 7e-7),
                            test::dimension("outer", DimensionKind::ring, {2}, 50e9, 1e-6)}}
              : FabricSpec{"nodes",
                           {test::dimension("inner", DimensionKind::switched, {8}, 300e9, 1e-6),
                            test::dimension("outer", DimensionKind::switched, {4}, 50e9, 2e-6)}};
    setting.system.stack.communication.data_overlap = random.between(0, 1);
    setting.system.stack.communication.context_overlap = 0.5;
    setting.system.stack.communication.bucket = Bytes(seed % 3 == 0 ? 25e6 : 1e9);
    setting.workload = test::training(2048, 64);
    const ParallelPlan plan = random.plan(setting);
    const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
    if (!has_time(h)) continue;
    const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
    ++plans;
    const double off = std::abs(h.step_time / f.step_time - 1);
    if (h.outside_domain()) {
      ++marked;
    } else {
      close += off < 0.05 ? 1 : 0;
      most = std::max(most, off);
      EXPECT_LT(off, 0.08) << test::describe(seed, plan) << " contended " << h.contended_share;
    }
  }
  RecordProperty("plans", plans);
  RecordProperty("marked", marked);
  RecordProperty("close", close);
  RecordProperty("most_per_mille", static_cast<int>(1000 * most));
  EXPECT_GE(plans, test::cases(80));
  if (!test::all_seeds()) return;
  EXPECT_LE(marked, plans / 24);
  EXPECT_GE(close, 0.97 * (plans - marked)) << marked << " of " << plans << " marked";
}

}  // namespace
}  // namespace shardscape::laws_modes
