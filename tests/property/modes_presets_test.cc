// Hierarchical against flattened mode on random plans of what is shipped: every stack that trains, on clusters of every
// kind of fabric, in all schedules and rank orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/simulate.h"
#include "sweep/yaml/load.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"

namespace shardscape::modes_presets {
namespace {

struct Drawn {
  Setting setting;
  ParallelPlan plan;
  std::string text;
};

ModelSpec short_model(test::ScenarioGenerator& random, bool experts) {
  ModelSpec model = test::llama(random.pick({8, 11, 16}), 4096, 32, 8, 14336, 32000);
  if (!experts) return model;
  MixtureOfExperts moe;
  moe.experts = 8;
  moe.top_k = 2;
  moe.expert_ffn_hidden = 14336;
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
  const char* const cluster =
      random.pick({"dgx-a100", "dgx-h100", "dgx-h800", "dgx-b200", "gb200-nvl72", "gb300-nvl72"});
  const bool experts = random.below(3) == 0;
  s.model = short_model(random, experts);
  s.system.stack = yaml::load_stack(catalog, stack).value();
  const yaml::Cluster machine = yaml::load_cluster(catalog, cluster).value();
  Problems problems;
  s.system.fabric = machine.fabric.instantiate(random.pick({8, 16, 32}), problems);
  EXPECT_TRUE(problems.empty());
  s.system.device = machine.device;
  ParallelPlan& plan = drawn.plan;
  plan = random.plan(s);
  plan.microbatch = 1;
  if (random.coin()) plan.order = kDefaultRankOrder;
  if (experts) plan.expert = random.pick({1, 2, 4, 8});
  if (plan.pipeline > 1 && random.below(5) == 0) {
    plan.schedule = ScheduleKind::dualpipe;
    plan.virtual_stages = 1;
  }
  s.workload =
      test::training(random.pick({2048, 4096, 8192}), plan.data * plan.pipeline * random.pick({1, 2, 3, 4}));
  drawn.text = test::describe(seed, plan) + ' ' + stack + " on " + cluster +
               (experts ? " ep " + std::to_string(plan.expert) : std::string());
  return drawn;
}

TEST(ModesPresets, AgreeOrSaySo) {
  const yaml::Catalog catalog({test::source_dir()});
  std::vector<double> off;
  int plans = 0, marked = 0, beyond = 0;
  std::string texts;
  for (std::uint64_t seed = 0; plans < test::cases(80) && seed < 1000; ++seed) {
    const Drawn drawn = draw(seed, catalog);
    const auto in_mode = [&](ExecutionMode mode) {
      return Simulator(drawn.setting, {.reference = false, .time_infeasible = true, .mode = mode})
          .run(drawn.plan);
    };
    const Prediction h = in_mode(ExecutionMode::hierarchical);
    if (h.status != Status::ok && h.status != Status::memory) continue;
    const Prediction f = in_mode(ExecutionMode::flattened);
    ++plans;
    const double difference = std::abs(h.step_time / f.step_time - 1);
    if (h.outside_domain()) {
      ++marked;
      continue;
    }
    off.push_back(difference);
    if (difference <= 0.05) continue;
    ++beyond;
    texts += '\n' + drawn.text + ": " + std::to_string(h.step_time / f.step_time - 1);
  }
  if (!test::all_seeds()) return;
  ASSERT_GE(off.size(), 60U);
  std::ranges::sort(off);
  const double most = off[off.size() * 95 / 100];
  RecordProperty("p95_per_mille", static_cast<int>(1000 * most));
  RecordProperty("marked", marked);
  EXPECT_LE(most, 0.03) << texts;
  EXPECT_LE(beyond, plans / 50) << texts;
  EXPECT_LE(marked, plans / 10);
}

}  // namespace
}  // namespace shardscape::modes_presets
