#include "engine/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/network/fabric.h"
#include "engine/workload/layers.h"
#include "tests/support/settings.h"

namespace shardscape {
namespace {

Setting small(std::int64_t gpus = 8, std::int64_t batch = 16) {
  Setting setting;
  setting.model = test::llama(8, 2048, 16, 4, 5632, 32000);
  setting.system = {test::a100(), gpus <= 8 ? test::nodes(gpus, 1) : test::nodes(8, gpus / 8),
                    test::full_stack()};
  setting.workload = test::training(2048, batch);
  return setting;
}

ParallelPlan plan_of(std::int32_t tp, std::int32_t cp, std::int32_t dp, std::int32_t pp) {
  ParallelPlan plan;
  plan.tensor = tp, plan.context = cp, plan.data = dp, plan.pipeline = pp;
  return plan;
}

struct Rejection {
  const char* name;
  Status status;
  Reason reason;
  void (*change)(Setting&, ParallelPlan&);
};

// Each case starts from a good plan (tp 2, cp 1, dp 2, pp 2) and breaks one rule.
const Rejection kRejections[] = {
    {"heads", Status::indivisible, Reason::heads_by_tensor,
     [](Setting& s, ParallelPlan&) { s.model.heads = s.model.kv_heads = 15; }},
    {"kv heads", Status::indivisible, Reason::kv_heads_by_tensor,
     [](Setting& s, ParallelPlan&) { s.model.heads = 18, s.model.kv_heads = 9; }},
    {"ffn", Status::indivisible, Reason::ffn_by_tensor,
     [](Setting& s, ParallelPlan&) { s.model.ffn_hidden = 5633; }},
    {"context", Status::indivisible, Reason::sequence_by_context,
     [](Setting& s, ParallelPlan& p) { p.context = 2, p.data = 1, s.workload.sequence_length = 2050; }},
    {"sequence parallel", Status::indivisible, Reason::sequence_by_context,
     [](Setting& s, ParallelPlan& p) { p.sequence_parallel = true, s.workload.sequence_length = 2049; }},
    {"layers", Status::indivisible, Reason::layers_by_pipeline,
     [](Setting& s, ParallelPlan&) { s.model.layers = 9; }},
    {"stages", Status::indivisible, Reason::fewer_layers_than_stages,
     [](Setting& s, ParallelPlan&) { s.model.layers = 1; }},
    {"batch", Status::indivisible, Reason::batch_by_data,
     [](Setting& s, ParallelPlan&) { s.workload.global_batch = 15; }},
    {"interleaved", Status::indivisible, Reason::microbatches_by_stages,
     [](Setting& s, ParallelPlan& p) {
       p.schedule = ScheduleKind::interleaved, p.virtual_stages = 2, s.workload.global_batch = 6;
     }},
    {"requests", Status::indivisible, Reason::requests_by_data,
     [](Setting& s, ParallelPlan&) { s.workload = test::inference(512, 64, 3); }},
    {"precision", Status::unsupported, Reason::precision,
     [](Setting& s, ParallelPlan&) { s.workload.precision = Precision::fp4; }},
    {"schedule", Status::unsupported, Reason::schedule,
     [](Setting&, ParallelPlan& p) { p.schedule = ScheduleKind::zero_bubble; }},
    {"memory", Status::memory, Reason::memory_capacity,
     [](Setting& s, ParallelPlan&) { s.system.device.hbm.capacity_per_stack = Bytes(1e8); }},
};

TEST(Feasibility, EachReasonIsReachable) {
  for (const Rejection& rejection : kRejections) {
    Setting setting = small();
    ParallelPlan plan = plan_of(2, 1, 2, 2);
    EXPECT_EQ(Simulator(setting).run(plan).status, Status::ok);
    rejection.change(setting, plan);
    const Prediction out = Simulator(setting).run(plan);
    EXPECT_EQ(out.status, rejection.status) << rejection.name;
    EXPECT_EQ(out.reason, rejection.reason) << rejection.name;
    EXPECT_EQ(out.step_time.value(), 0) << rejection.name;
  }
}

TEST(Feasibility, PointsThatDoNotFitAreTimedWhenAsked) {
  Setting setting = small();
  const ParallelPlan plan = plan_of(2, 1, 2, 2);
  const Prediction fits = Simulator(setting).run(plan);
  setting.system.device.hbm.capacity_per_stack = Bytes(1e8);
  const Prediction out = Simulator(setting, {.time_infeasible = true}).run(plan);
  EXPECT_EQ(out.status, Status::memory);
  EXPECT_EQ(out.step_time, fits.step_time);
  EXPECT_EQ(out.memory_peak, fits.memory_peak);
}

TEST(Training, PeakIsTheFullestStage) {
  const Setting setting = small();
  Details details;
  const Prediction out = Simulator(setting).run(plan_of(1, 1, 1, 8), {}, &details);
  ASSERT_EQ(details.stage_memory.size(), 8U);
  Bytes fullest;
  std::size_t where = 0;
  for (std::size_t s = 0; s < 8; ++s) {
    if (details.stage_memory[s].total() > fullest) fullest = details.stage_memory[s].total(), where = s;
  }
  EXPECT_EQ(out.memory_peak, fullest);
  EXPECT_EQ(out.memory.total(), fullest);
  EXPECT_EQ(out.peak_stage, static_cast<std::int32_t>(where));
}

// tokens / s / GPU = batch x sequence / time / GPUs; MFU = 3 x forward FLOPs over peak.
TEST(Training, RatesFollowFromTheStepTime) {
  const Setting setting = small();
  const Prediction out = Simulator(setting).run(plan_of(2, 1, 2, 2));
  const double t = out.step_time.value();
  EXPECT_DOUBLE_EQ(out.tokens_per_s_per_gpu, 16.0 * 2048 / t / 8);
  // Per token: 2 FLOPs per matrix weight, head included, and 4 s (heads x head_dim) per layer of attention.
  const double matrices =
      8 * (2048.0 * (2048 + 2 * 512) + 2048.0 * 2048 + 3 * 2048.0 * 5632) + 2048.0 * 32000;
  const double flops = 3 * 16 * 2048.0 * (2 * matrices + 8 * 4.0 * 2048 * 2048);
  EXPECT_NEAR(out.mfu, flops / t / (8 * 108 * 2048 * 1.41e9), 1e-12);
  EXPECT_EQ(out.microbatches, 8);
}

// One stage, one replica: nothing to send, no bubble; the step is microbatches x (forward + backward) and the
// tail.
TEST(Training, OneDeviceHasNeitherTrafficNorBubble) {
  Setting setting = small(1);
  setting.model.layers = 2;
  const Prediction out = Simulator(setting).run(ParallelPlan{});
  ASSERT_EQ(out.status, Status::ok);
  const Breakdown& b = out.breakdown;
  EXPECT_EQ((b.tensor_comm + b.context_comm + b.pipeline_comm + b.data_comm + b.recompute).value(), 0);
  EXPECT_NEAR(b.bubble.value(), 0, 1e-12);
  EXPECT_GT(b.compute.value(), 0);
  // 4 gradient + 2 x 12 state + 2 weight bytes per parameter stream through the optimizer.
  EXPECT_NEAR(b.optimizer.value(), 30 * setting.model.parameters() / (0.8 * 2039e9), 1e-9);
}

// A perfectly uniform pipeline without head, embedding, host or transfer cost has the bubble (p - 1) / m of
// the busy time, within the weight of the (tiny) head and embedding.
TEST(Training, BubbleApproachesTheClosedForm) {
  Setting setting = small(8, 32);
  setting.system.stack = test::bare_stack();
  setting.model.vocabulary = 8;
  setting.system.fabric.dimensions[0].bandwidth = BytesPerSecond(1e18);
  setting.system.fabric.dimensions[0].latency = Seconds(0);
  const Prediction out = Simulator(setting).run(plan_of(1, 1, 1, 8));
  ASSERT_EQ(out.status, Status::ok);
  const double busy = out.breakdown.compute.value();
  EXPECT_NEAR(out.breakdown.bubble.value() / busy, 7.0 / 32, 0.06);
}

// Full recompute repeats the forward of the blocks, nothing of embedding and head.
TEST(Training, FullRecomputeAddsOneForwardOfTheBlocks) {
  Setting setting = small(1);
  setting.system.stack = test::bare_stack();
  ParallelPlan plan;
  const Prediction none = Simulator(setting).run(plan);
  plan.recompute = Recompute::full;
  Details details;
  const Prediction full = Simulator(setting).run(plan, {}, &details);
  double forward = 0;
  for (const OperatorRow& row : details.operators) {
    if (row.phase == "recompute") forward += row.count * row.time.value();
  }
  EXPECT_GT(forward, 0);
  EXPECT_NEAR(full.breakdown.recompute.value(), forward, 1e-9 * forward);
  EXPECT_NEAR((full.step_time - none.step_time).value(), forward, 1e-9 * forward);
  EXPECT_LT(full.memory.activations, none.memory.activations);
}

// The operator table and the breakdown tell the same story: compute of the critical rank is the sum of rows.
TEST(Training, OperatorRowsAddUpToTheBreakdown) {
  Setting setting = small();
  setting.system.stack.communication.tensor_overlap = 0;
  Details details;
  const Prediction out = Simulator(setting).run(plan_of(2, 1, 2, 2), {}, &details);
  double compute = 0, tensor = 0;
  for (const OperatorRow& row : details.operators) {
    (row.bound == "link" ? tensor : compute) += row.count * row.time.value();
  }
  EXPECT_NEAR(out.breakdown.compute.value(), compute, 1e-9 * compute);
  EXPECT_NEAR(out.breakdown.tensor_comm.value(), tensor, 1e-9 * tensor);
}

TEST(Inference, TimesAndRatesAreConsistent) {
  Setting setting = small();
  setting.workload = test::inference(1000, 200, 32);
  const Prediction out = Simulator(setting).run(plan_of(4, 1, 2, 1));
  ASSERT_EQ(out.status, Status::ok);
  EXPECT_DOUBLE_EQ(out.e2e.value(), (out.ttft + 199 * out.itl).value());
  EXPECT_NEAR(out.tokens_per_s_per_gpu, 32 * 200 / out.e2e.value() / 8, 1e-9);
  EXPECT_NEAR(out.breakdown.total().value(), out.e2e.value(), 1e-9 * out.e2e.value());
}

// Batch 1 on one bare device: a decode step streams every weight of blocks and head once, and the cache; the
// launches of the kernels are on top.
TEST(Inference, DecodeOfOneRequestStreamsTheWeights) {
  Setting setting = small(1);
  setting.model = test::llama2_7b();
  setting.system.stack = test::bare_stack();
  setting.system.device.kernel_latency = Seconds(0);
  setting.workload = test::inference(1000, 200, 1);
  const Prediction out = Simulator(setting).run(ParallelPlan{});
  const double weights = 2 * (setting.model.parameters() - setting.model.embedding_parameters());
  const double cache = 2.0 * 2 * 32 * 4096 * 1100;
  const double stream = (weights + cache) / (0.8 * 2039e9);
  EXPECT_GT(out.step_time.value(), stream * 0.999);
  EXPECT_LT(out.step_time.value(), stream * 1.1);
  EXPECT_EQ(out.itl, out.step_time);  // nobody else's prefill to wait for
}

TEST(Simulators, AreIndependentAndMovable) {
  const Setting setting = small();
  const ParallelPlan plan = plan_of(2, 1, 2, 2);
  Simulator a(setting);
  const Seconds time = a.run(plan).step_time;
  Simulator b(std::move(a));
  EXPECT_EQ(b.run(plan).step_time, time);
}

}  // namespace
}  // namespace shardscape
