// The head's weight gradient behind the last backward: times in closed form, both modes, memory, where it has no
// effect.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/compute/gemm.h"
#include "engine/simulate.h"
#include "engine/step/layers/price_layers.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr std::int64_t kWords = 32000, kWidth = 1024, kPromptLength = 512;

/// Eight GPT blocks without dropout, untied; a fabric and a stack that cost nothing.
Setting eight_blocks(std::int64_t ranks, std::int64_t batch) {
  Setting s;
  s.model = test::gpt(8, kWidth, 8, kWords, kPromptLength);
  s.model.dropout = 0;
  s.model.tied_embeddings = false;
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, 1e30, 0);
  s.system.stack = test::plain_stack();
  s.workload = test::training(kPromptLength, batch);
  return s;
}

struct Outcome {
  Prediction prediction;
  Details details;
};

Outcome run_plan(const Setting& setting, const ParallelPlan& plan,
                 ExecutionMode mode = ExecutionMode::hierarchical) {
  Outcome out;
  Simulator simulator(setting, {.time_infeasible = true, .mode = mode});
  out.prediction = simulator.run(plan, {}, &out.details);
  return out;
}

Setting deferring(Setting setting, std::int64_t limit = 0) {
  setting.system.stack.head = {true, limit};
  return setting;
}

/// The product x^T dy of one microbatch: hidden x words over the tokens, added to fp32 gradients.
double head_gradient(const DeviceSpec& device) {
  return compute::gemm({kWidth, kWords, kPromptLength, 1}, Precision::bf16, device, {4, true}).time.value();
}

/// Parameters of the stages of eight_blocks in two.
constexpr double kBlock = 12.0 * kWidth * kWidth + 4 * kWidth + (3 + 1 + 4 + 1) * kWidth;
constexpr double kHead = static_cast<double>(kWords) * kWidth;
constexpr double kFirstStage = 4 * kBlock + kHead + static_cast<double>(kPromptLength) * kWidth;
constexpr double kLastStage = 4 * kBlock + kHead + 2 * kWidth;

/// Reads gradient, master copy and moments, writes the latter and the weights.
double adam_step(double parameters) { return 2e-6 + 30 * parameters / 2e12; }

TEST(DeferredHead, TwoStagesTakeTheirClosedForm) {
  // 1f1b, two stages, free messages, the last one the slower. It gets the first activation after F0 and never waits
  // again: stage 0, which is back at forward k + 1 after backward k, needs F0 + B0 for what takes the last stage
  // F1 + B1 at least. Of m microbatches D defer w each, so the last stage ends its last backward at
  //
  //     e = F0 + m (F1 + B1) - D w
  //
  // Stage 0 has one backward behind that, the last stage D w; then each its optimizer:
  //
  //     e + max(B0 + O0, D w + O1)
  for (const std::int64_t m : {4, 8}) {
    const Setting plain = eight_blocks(2, m);
    const ParallelPlan plan = test::plan_of(1, 1, 2, 1);
    const Outcome off = run_plan(plain, plan);
    const double f0 = off.details.stage_forward.at(0).value(), b0 = off.details.stage_backward.at(0).value();
    const double f1 = off.details.stage_forward.at(1).value(), b1 = off.details.stage_backward.at(1).value();
    const double w = head_gradient(plain.system.device);
    ASSERT_GT(f1 + b1 - w, f0 + b0);
    const auto md = static_cast<double>(m);
    for (const std::int64_t limit : {0, 1, 3, 50}) {
      SCOPED_TRACE(testing::Message() << m << " microbatches, limit " << limit);
      const double deferred = limit == 0 ? md : std::min(md, static_cast<double>(limit));
      const double end = f0 + md * (f1 + b1) - deferred * w;
      const double step = end + std::max(b0 + adam_step(kFirstStage), deferred * w + adam_step(kLastStage));
      const Setting setting = deferring(plain, limit);
      for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
        const Outcome on = run_plan(setting, plan, mode);
        EXPECT_NEAR(on.prediction.step_time.value() / step, 1, 1e-9) << (mode == ExecutionMode::flattened);
        EXPECT_NEAR(on.prediction.breakdown.total() / on.prediction.step_time, 1, 1e-9);
      }
    }
  }
}

TEST(DeferredHead, TheCoolDownHidesIt) {
  // Four stages, w of one microbatch far below the backwards of the stages before: the step is shorter by w.
  const Setting plain = eight_blocks(4, 8);
  const ParallelPlan plan = test::plan_of(1, 1, 4, 1);
  const double w = head_gradient(plain.system.device);
  const double off = run_plan(plain, plan).prediction.step_time.value();
  EXPECT_NEAR((off - run_plan(deferring(plain, 1), plan).prediction.step_time.value()) / w, 1, 1e-9);
}

TEST(DeferredHead, ItsBucketsLeaveBehindIt) {
  // Two replicas on links so fast that a bucket is gone before the next is whole. Four equal buckets; when the last
  // backward ends, norm and four blocks are whole, 50.4 M of 83.2 M: two have gone, the other two hold the head and
  // leave when its gradients are whole. Without overlap all leave then.
  Setting setting = deferring(eight_blocks(4, 32));
  setting.system.fabric = test::crossbar(4, 1e14, 0);
  setting.system.stack.communication.bucket = Bytes(kLastStage);
  const double all = 4 * kLastStage / 1e14;
  for (const double overlap : {0.0, 1.0}) {
    setting.system.stack.communication.data_overlap = overlap;
    for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
      const Prediction out = run_plan(setting, test::plan_of(1, 1, 2, 2), mode).prediction;
      EXPECT_NEAR(out.breakdown[TimeClass::data_comm].value() / all, overlap > 0 ? 0.5 : 1, 1e-3);
    }
  }
}

TEST(DeferredHead, FlattenedModeAgreesOnPlansOfAllAxes) {
  struct Case {
    std::int32_t tensor, pipeline, data, virtual_stages;
    std::int64_t limit;
  };
  for (const Case& c : {Case{2, 2, 2, 1, 0}, Case{2, 4, 1, 1, 3}, Case{1, 4, 2, 2, 0}, Case{2, 2, 2, 2, 5},
                        Case{1, 8, 1, 1, 0}}) {
    Setting setting = deferring(eight_blocks(8, 32), c.limit);
    setting.system.fabric = test::crossbar(8, 300e9, 1e-6);
    setting.system.stack.host.forward_layer = Seconds(2e-5);
    setting.system.stack.host.backward_layer = Seconds(3e-5);
    setting.system.stack.communication.data_overlap = 1;
    setting.system.stack.communication.bucket = Bytes(40e6);
    setting.system.stack.communication.pipeline_async = true;
    ParallelPlan plan = test::plan_of(c.tensor, 1, c.pipeline, c.data);
    plan.sequence_parallel = c.tensor > 1;
    plan.zero_stage = c.data > 1 ? 1 : 0;
    plan.virtual_stages = c.virtual_stages;
    if (c.virtual_stages > 1) plan.schedule = ScheduleKind::interleaved;
    SCOPED_TRACE(test::describe(0, plan));
    const Prediction priced = run_plan(setting, plan).prediction;
    const Prediction executed = run_plan(setting, plan, ExecutionMode::flattened).prediction;
    // Interleaved stages are priced with the mean of their chunks.
    EXPECT_NEAR(executed.step_time / priced.step_time, 1, c.virtual_stages > 1 ? 0.05 : 0.01);
    EXPECT_NEAR(priced.breakdown.total() / priced.step_time, 1, 1e-9);
  }
}

TEST(DeferredHead, EverythingThatIsDeferredIsKept) {
  // Of each microbatch before the last one its input and the gradient of its logits, both bf16.
  const Setting plain = eight_blocks(2, 8);
  const ParallelPlan plan = test::plan_of(1, 1, 2, 1);
  const Outcome off = run_plan(plain, plan);
  constexpr double kKept = 2.0 * kPromptLength * (kWidth + kWords);
  for (const std::int64_t limit : {0, 3}) {
    const Outcome on = run_plan(deferring(plain, limit), plan);
    for (const std::size_t stage : {0U, 1U}) {
      const Bytes more =
          on.details.stage_memory.at(stage).total() - off.details.stage_memory.at(stage).total();
      EXPECT_NEAR(more.value(), stage == 0 ? 0 : (limit == 0 ? 7 : 3) * kKept, 1);
    }
  }
}

TEST(DeferredHead, OnlyPipelinesWithACoolDownDefer) {
  const auto expect_same = [](const Setting& plain, const ParallelPlan& plan) {
    SCOPED_TRACE(test::describe(0, plan));
    for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
      const Outcome off = run_plan(plain, plan, mode), on = run_plan(deferring(plain), plan, mode);
      EXPECT_GT(off.prediction.step_time, Seconds(0));
      EXPECT_EQ(on.prediction.step_time, off.prediction.step_time);
      EXPECT_EQ(on.prediction.memory_peak, off.prediction.memory_peak);
    }
  };
  expect_same(eight_blocks(1, 4), test::plan_of(1, 1, 1, 1));
  ParallelPlan plan = test::plan_of(1, 1, 2, 1);
  for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::zero_bubble}) {
    plan.schedule = kind;
    expect_same(eight_blocks(2, 4), plan);
  }
  // Gradients that leave with every microbatch cannot wait.
  plan = test::plan_of(1, 1, 2, 2);
  plan.zero_stage = 3;
  expect_same(eight_blocks(4, 8), plan);
}

TEST(DeferredHead, OfFurtherTokensTheVocabularysProductsAloneWait) {
  // One module more runs a block and the head again: two products with the vocabulary may wait, nothing else.
  Setting setting = eight_blocks(1, 4);
  setting.model.moe.emplace();
  setting.model.moe->experts = 4;
  setting.model.moe->top_k = 2;
  setting.model.moe->expert_ffn_hidden = 512;
  setting.model.moe->mtp_layers = 1;
  const model::LayerKey key = model::layer_key(test::plan_of(1, 1, 1, 1), 1);
  const step::LayerCost head = step::price_layers(setting, key)[step::kHeadLayer];
  const double w = head_gradient(setting.system.device);
  EXPECT_NEAR(head[step::LayerPart::weight].device.value(), 2 * w, 1e-12);
  EXPECT_NEAR((head[step::LayerPart::backward].device - head[step::LayerPart::input].device).value(), 2 * w,
              1e-12);
  EXPECT_DOUBLE_EQ(head.put_off.value(), 2 * 2.0 * kPromptLength * (kWidth + kWords));
}

}  // namespace
}  // namespace shardscape
