// Does what is remembered of products and floors change nothing, to the bit? Against layers priced without a memo, and
// against floors that are asked of a new object for each plan.
#include <gtest/gtest.h>

#include <vector>

#include "engine/plan_floor.h"
#include "engine/step/feasibility.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape {
namespace {

void expect_equal(const step::PartCost& part, const step::PartCost& plain) {
  EXPECT_EQ(part.device, plain.device);
  EXPECT_EQ(part.attention_core, plain.attention_core);
  EXPECT_EQ(part.experts, plain.experts);
  EXPECT_EQ(part.call_count, plain.call_count);
  EXPECT_EQ(part.works, plain.works);
  EXPECT_EQ(part.between, plain.between);
}

void expect_equal(const PassFloors& one, const PassFloors& other) {
  for (const LayerFloors PassFloors::*floors :
       {&PassFloors::alone, &PassFloors::launches, &PassFloors::paired}) {
    for (std::size_t kind = 0; kind < step::kLayerKinds; ++kind) {
      for (const double LayerFloor::*member :
           {&LayerFloor::forward, &LayerFloor::backward, &LayerFloor::input, &LayerFloor::weight})
        EXPECT_EQ((one.*floors)[kind].*member, (other.*floors)[kind].*member) << kind;
    }
  }
}

/// A setting, with experts or without, with grouped products or without.
Setting any_setting(test::ScenarioGenerator& random) {
  Setting setting = random.setting(Phase::training);
  if (random.coin()) return setting;
  MixtureOfExperts moe;
  moe.experts = 16;
  moe.top_k = random.pick({1, 2, 4});
  moe.expert_ffn_hidden = 512;
  setting.model.moe = moe;
  return setting;
}

TEST(RememberedProducts, LayersCostTheSame) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(100); ++seed) {
    test::ScenarioGenerator random(seed);
    const Setting setting = any_setting(random);
    step::ProductMemo known;
    for (int i = 0; i < 8; ++i) {
      const ParallelPlan plan = random.plan(setting);
      SCOPED_TRACE(test::describe(seed, plan));
      if (step::check_plan(setting, plan).status != Status::ok) continue;
      const model::LayerKey key = model::layer_key(plan, plan.microbatch);
      const step::LayerCosts costs = step::price_layers(setting, key, &known),
                             plain = step::price_layers(setting, key);
      for (const step::LayerKind kind : step::layer_kinds(setting.model))
        for (std::size_t part = 0; part < step::kParts; ++part)
          expect_equal(costs[kind].parts[part], plain[kind].parts[part]);
      ++plans;
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GE(plans, test::at_least(200));
}

TEST(RememberedProducts, FloorsAreThoseOfAPlanAlone) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(60); ++seed) {
    test::ScenarioGenerator random(seed);
    const Setting setting = any_setting(random);
    for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
      PlanFloor kept(setting, {}, mode);
      for (int i = 0; i < 10; ++i) {
        ParallelPlan plan = random.plan(setting);
        plan.zero_stage = static_cast<std::int32_t>(random.below(4));
        SCOPED_TRACE(test::describe(seed, plan));
        if (!kept.possible(plan)) continue;
        PlanFloor alone(setting, {}, mode);
        const std::vector<RankOrder> orders = {plan.order};
        const PassFloors passes = kept.with_calls(plan, orders);
        expect_equal(passes, alone.with_calls(plan, orders));
        expect_equal(kept.without_calls(plan), alone.without_calls(plan));
        EXPECT_EQ(kept.least(plan, passes), alone.least(plan, passes));
        EXPECT_EQ(kept.least_of_stage(plan, passes), alone.least_of_stage(plan, passes));
        ++plans;
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GE(plans, test::at_least(200));
}

}  // namespace
}  // namespace shardscape
