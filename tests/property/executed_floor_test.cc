// No executed step lies below the floors of the flattened mode, and no price below those of the hierarchical one:
// random plans of every stack that trains on every kind of shipped cluster, dense and with experts, in all
// schedules, rank orders, ZeRO stages and ways to recompute.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "engine/plan_floor.h"
#include "engine/simulate.h"
#include "sweep/yaml/load.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"

namespace shardscape::executed_floor {
namespace {

constexpr double kSumsRounded = 1e-9;

struct Drawn {
  Setting setting;
  ParallelPlan plan;
  std::string text;
};

ModelSpec drawn_model(test::ScenarioGenerator& random, bool experts) {
  ModelSpec model = test::llama(random.pick({7, 8, 16, 24}), 4096, 32, 8, 14336, 32000);
  if (!experts) return model;
  MixtureOfExperts moe;
  moe.experts = 8;
  moe.top_k = 2;
  moe.expert_ffn_hidden = random.pick({2048, 14336});
  moe.first_dense_layers = random.pick({0, 1});
  model.moe = moe;
  return model;
}

Drawn draw(std::uint64_t seed, const yaml::Catalog& catalog) {
  test::ScenarioGenerator random(seed);
  Drawn drawn;
  Setting& s = drawn.setting;
  const char* const stack =
      random.pick({"automodel", "fsdp", "hai-llm", "llama3", "maxtext", "megatron-core-alltoall-25.05",
                   "megatron-core-alltoall", "megatron-core-graphs", "megatron-core-plain", "megatron-core",
                   "megatron-lm", "nanotron-a", "nanotron-b", "pytorch", "torchtitan"});
  const char* const cluster = random.pick(
      {"dgx-a100", "dgx-h100", "dgx-h800", "dgx-b200", "gb200-nvl72", "gb300-nvl72", "a100-torus2d-ring-64"});
  const bool experts = random.below(3) == 0;
  s.model = drawn_model(random, experts);
  s.system.stack = yaml::load_stack(catalog, stack).value();
  const yaml::Cluster machine = yaml::load_cluster(catalog, cluster).value();
  Problems problems;
  const bool torus = std::string(cluster) == "a100-torus2d-ring-64";
  s.system.fabric = machine.fabric.instantiate(torus ? 64 : random.pick({8, 16, 32}), problems);
  EXPECT_TRUE(problems.empty());
  s.system.device = machine.device;
  ParallelPlan& plan = drawn.plan;
  plan = random.plan(s);
  plan.microbatch = 1;
  if (plan.pipeline == 1 && plan.data >= 4 && random.coin()) {  // more pipelines than the generator draws
    plan.pipeline = 4;
    plan.data /= 4;
    if (random.coin()) {
      plan.schedule = ScheduleKind::interleaved;
      plan.virtual_stages = 2;
    }
  }
  if (random.coin()) plan.order = kDefaultRankOrder;
  if (experts) plan.expert = random.pick({1, 2, 4, 8});
  if (plan.pipeline > 1 && random.below(5) == 0) {
    plan.schedule = ScheduleKind::dualpipe;
    plan.virtual_stages = 1;
  }
  s.workload =
      test::training(random.pick({512, 2048, 4096}), plan.data * plan.pipeline * random.pick({1, 2, 4}));
  if (experts && random.coin()) {
    s.workload.expert_load.distribution = LoadDistribution::power_law;
    s.workload.expert_load.exponent = random.between(0.2, 1.5);
  }
  drawn.text = test::describe(seed, plan) + ' ' + stack + " on " + cluster +
               (experts ? " ep " + std::to_string(plan.expert) : std::string());
  return drawn;
}

void hold_price(const Drawn& drawn) {
  const Prediction out = Simulator(drawn.setting, {.time_infeasible = true}).run(drawn.plan);
  const double step = out.step_time.value() * (1 + kSumsRounded);
  PlanFloor floor(drawn.setting);
  const std::vector<RankOrder> orders = {drawn.plan.order};
  EXPECT_LE(floor.least_of_stage(drawn.plan, floor.without_calls(drawn.plan)), step);
  EXPECT_LE(floor.of_point(drawn.plan, floor.with_calls(drawn.plan, orders)), step);
}

bool has_time(const Prediction& p) { return p.status == Status::ok || p.status == Status::memory; }

TEST(ExecutedFloor, NoStepIsShorterInEitherMode) {
  const yaml::Catalog catalog({test::source_dir()});
  int plans = 0;
  double sharpest = 0, coarsest = 0;
  for (std::uint64_t seed = 1; plans < test::cases(600) && seed < 4000; ++seed) {
    const Drawn drawn = draw(seed, catalog);
    SCOPED_TRACE(drawn.text);
    Simulator simulator(drawn.setting, {.time_infeasible = true, .mode = ExecutionMode::flattened});
    double heard = 0;
    simulator.watch([&](Seconds at_least) {
      heard = at_least.value();
      return true;
    });
    const Prediction out = simulator.run(drawn.plan);
    if (!has_time(out)) continue;
    hold_price(drawn);
    const double step = out.step_time.value() * (1 + kSumsRounded);
    EXPECT_LE(heard, step) << "while it was executed";
    PlanFloor floor(drawn.setting, {}, ExecutionMode::flattened);
    ParallelPlan least = drawn.plan;
    least.recompute = Recompute::none;
    least.zero_stage = 0;
    const std::vector<RankOrder> orders = {drawn.plan.order};
    const PassFloors bare = floor.without_calls(drawn.plan), called = floor.with_calls(drawn.plan, orders);
    const double coarse = floor.least(least, floor.without_calls(least));
    const double of_point = floor.of_point(drawn.plan, called);
    EXPECT_GT(coarse, 0);
    EXPECT_LE(coarse, step);
    EXPECT_LE(floor.least_of_stage(drawn.plan, bare), step);
    EXPECT_LE(floor.least_of_stage(drawn.plan, called), step);
    EXPECT_LE(floor.of_point(drawn.plan, bare), step);
    EXPECT_LE(of_point, step);
    EXPECT_LE(floor.least(drawn.plan, called), of_point);
    ++plans;
    coarsest += coarse / step;
    sharpest += of_point / step;
  }
  ASSERT_GT(plans, 0);
  RecordProperty("mean_coarse_floor_of_step", std::to_string(coarsest / plans));
  RecordProperty("mean_floor_of_point_of_step", std::to_string(sharpest / plans));
  if (!test::all_seeds()) return;
  EXPECT_GE(plans, 100);
  EXPECT_GE(sharpest / plans, 0.75);  // else it prunes nothing
}

}  // namespace
}  // namespace shardscape::executed_floor
