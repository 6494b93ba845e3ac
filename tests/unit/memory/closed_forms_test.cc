// Do the saved activations of a stage add up to the closed forms of Korthikanti et al. 2022 (table 2 and
// section 4.2.3), from the operator list through the schedule to the bytes of the stage?
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "engine/memory/memory.h"
#include "engine/model/block_kinds.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::memory {
namespace {

struct Shape {
  std::int64_t s, h, a;
  std::int32_t b;
};
/// GPT 22B, 175B and 1T of the paper's table 3 (a and h scaled alike), and a long sequence.
constexpr std::array kShapes = {Shape{2048, 6144, 64, 4}, Shape{2048, 12288, 96, 1},
                                Shape{2048, 25600, 160, 1}, Shape{8192, 4096, 32, 2}};

/// A row of table 2: bytes per layer over s b h.
struct Variant {
  const char* name;
  bool split, sequence_parallel;
  Recompute recompute;
  std::function<double(double t, double scores)> bytes;  ///< scores = a s / h
};
const std::array kVariants = {
    Variant{"no parallelism", false, false, Recompute::none, [](double, double x) { return 34 + 5 * x; }},
    Variant{"tensor", true, false, Recompute::none, [](double t, double x) { return 10 + (24 + 5 * x) / t; }},
    Variant{"tensor + sequence", true, true, Recompute::none,
            [](double t, double x) { return (34 + 5 * x) / t; }},
    Variant{"tensor, selective", true, false, Recompute::selective,
            [](double t, double) { return 10 + 24 / t; }},
    Variant{"tensor + sequence, selective", true, true, Recompute::selective,
            [](double t, double) { return 34 / t; }},
    Variant{"full", true, false, Recompute::full, [](double, double) { return 2.0; }},
    Variant{"tensor + sequence, full", true, true, Recompute::full, [](double t, double) { return 2 / t; }},
};

/// Saved activations of the first stage, in units of s b h, of a model with `layers` blocks.
double first_stage(const Shape& shape, const ParallelPlan& plan, std::int32_t layers,
                   std::int32_t microbatches) {
  Setting setting;
  setting.model = test::gpt(layers, shape.h, shape.a, 51200, shape.s);
  setting.system.device = test::round_device();
  setting.system.stack = test::plain_stack();
  setting.system.stack.attention = AttentionKernel::naive;
  setting.workload = test::training(shape.s, static_cast<std::int64_t>(shape.b) * microbatches);
  const model::LayerKey key{plan.tensor, plan.context, shape.b, plan.sequence_parallel};
  ActivationBytes activations;
  activations.block[0].saved =
      model::saved_bytes(model::block_operators(setting, 0, key, shape.s, model::Mode::training),
                         plan.recompute, setting, key, shape.s);
  const std::vector<model::StageLayers> per_stage(static_cast<std::size_t>(plan.pipeline),
                                                  {0, layers / plan.pipeline});
  const MemoryInputs inputs{
      setting,     plan,
      per_stage,   model::stage_parameters(setting.model, setting.workload.policy(), plan),
      activations, {plan.schedule, plan.pipeline, plan.virtual_stages, microbatches}};
  const double sbh = static_cast<double>(shape.s * shape.h) * shape.b;
  return training_stage(inputs, 0).activations.value() / sbh;
}

double scores(const Shape& shape) {
  return static_cast<double>(shape.a * shape.s) / static_cast<double>(shape.h);
}

TEST(ClosedForms, BytesPerLayerOfEveryVariant) {
  for (const Shape& shape : kShapes) {
    for (const Variant& variant : kVariants) {
      for (const int t : {2, 4, 8}) {
        SCOPED_TRACE(testing::Message() << variant.name << ", h " << shape.h << ", t " << t);
        ParallelPlan plan = test::plan_of(variant.split ? t : 1, 1, 1, 1);
        plan.sequence_parallel = variant.sequence_parallel;
        plan.recompute = variant.recompute;
        EXPECT_DOUBLE_EQ(first_stage(shape, plan, 1, 1), variant.bytes(variant.split ? t : 1, scores(shape)));
      }
    }
  }
}

TEST(ClosedForms, TheFirstStageOfAPipelineHoldsLLayers) {
  // Equation 5: with 1F1B and at least p microbatches, p of them are in flight on L / p layers, whatever p.
  const Shape shape{2048, 6144, 64, 4};
  for (const Variant& variant : kVariants) {
    for (const int p : {2, 4, 8}) {
      SCOPED_TRACE(testing::Message() << variant.name << ", p " << p);
      ParallelPlan plan = test::plan_of(variant.split ? 8 : 1, 1, p, 1);
      plan.sequence_parallel = variant.sequence_parallel;
      plan.recompute = variant.recompute;
      const double layer = variant.bytes(variant.split ? 8 : 1, scores(shape));
      EXPECT_DOUBLE_EQ(first_stage(shape, plan, 48, 2 * p), 48 * layer);
    }
  }
}

TEST(ClosedForms, InterleavingHoldsALittleMore) {
  // Section 4.2.3: L (1 + (p - 1) / (p v)) layers with v chunks per stage (the paper's m).
  const Shape shape{2048, 12288, 96, 1};
  for (const Variant& variant : kVariants) {
    for (const auto& [p, v] : {std::pair{2, 2}, {4, 3}, {8, 3}, {8, 6}}) {
      SCOPED_TRACE(testing::Message() << variant.name << ", p " << p << ", v " << v);
      ParallelPlan plan = test::plan_of(variant.split ? 8 : 1, 1, p, 1);
      plan.sequence_parallel = variant.sequence_parallel;
      plan.recompute = variant.recompute;
      plan.schedule = ScheduleKind::interleaved;
      plan.virtual_stages = v;
      const double layer = variant.bytes(variant.split ? 8 : 1, scores(shape));
      EXPECT_NEAR(first_stage(shape, plan, 96, 8 * p) / (96 * (1 + (p - 1.0) / (p * v)) * layer), 1, 1e-14);
    }
  }
}

}  // namespace
}  // namespace shardscape::memory
