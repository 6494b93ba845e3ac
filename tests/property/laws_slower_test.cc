// Nothing slower makes a step shorter in the hierarchical mode: no sick link, slow device or throttled memory whatever
// the plan, and no worse hardware where passes run in pairs. On random plans of what is shipped, dense and of experts.
//
// Executed messages may do otherwise: who is late leaves links to others (laws_faults_test.cc has the band).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/simulate.h"
#include "engine/step/layers/paired_passes.h"
#include "engine/step/plan_pipeline.h"
#include "sweep/yaml/load.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"

namespace shardscape::laws_slower {
namespace {

constexpr double kRounding = 1e-9;
/// Of a step. Contention (step/training/contention.h) counts by shares of time, such as that of the bubble and that for
/// which traffic is on links: another share moves it by millionths of a step.
constexpr double kSharesBand = 1e-5;

struct Drawn {
  Setting setting;
  ParallelPlan plan;
  std::string text;
};

ModelSpec random_model(test::ScenarioGenerator& random, bool experts) {
  ModelSpec model = test::llama(random.pick({6, 8, 11}), 4096, 32, 8, 14336, 32000);
  if (!experts) return model;
  MixtureOfExperts moe;
  moe.experts = random.pick({8, 16, 64});
  moe.top_k = random.pick({1, 2, 6});
  moe.expert_ffn_hidden = random.pick({1408, 4096, 14336});
  moe.first_dense_layers = random.pick({0, 0, 1});
  model.moe = moe;
  return model;
}

bool runs_pairs(const Drawn& drawn) {
  const auto shape = step::pipeline_shape(drawn.setting, drawn.plan);
  return drawn.setting.system.stack.communication.expert_overlap > 0 && drawn.plan.expert > 1 &&
         (shape.overlaps || shape.both_ways());
}

/// `pairs`: of stacks that run passes in pairs, mostly with plans that do.
Drawn draw(std::uint64_t seed, const yaml::Catalog& catalog, bool pairs) {
  test::ScenarioGenerator random(seed);
  Drawn drawn;
  Setting& s = drawn.setting;
  const char* const any_stack =
      random.pick({"automodel", "fsdp", "hai-llm", "llama3", "maxtext", "megatron-core-alltoall-25.05",
                   "megatron-core-alltoall", "megatron-core-graphs", "megatron-core-plain", "megatron-core",
                   "megatron-lm", "nanotron-a", "nanotron-b", "pytorch", "torchtitan"});
  const char* const stack = pairs ? random.pick({"hai-llm", "megatron-core"}) : any_stack;
  const char* const cluster =
      random.pick({"a100-pcie-4", "a100-torus2d-ring-64", "dgx-1v", "dgx-a100", "dgx-a100-40gb", "dgx-h100",
                   "dgx-h200", "dgx-h20", "dgx-h800", "dgx-b200", "dgx-b300", "gb200-nvl72", "gb300-nvl72"});
  const bool experts = pairs || random.coin();
  s.model = random_model(random, experts);
  s.system.stack = yaml::load_stack(catalog, stack).value();
  const yaml::Cluster machine = yaml::load_cluster(catalog, cluster).value();
  Problems problems;
  s.system.fabric = machine.fabric.instantiate(random.pick({4, 8, 16, 32, 64}), problems);
  s.system.device = machine.device;
  ParallelPlan& plan = drawn.plan;
  if (problems.empty()) plan = random.plan(s);
  if (random.coin()) plan.order = kDefaultRankOrder;
  if (experts) {
    plan.expert = random.pick({2, 4, 8, 16});
    plan.expert_tensor = random.pick({1, 1, 2, 8});
  }
  if (plan.pipeline > 1 && random.below(pairs ? 2 : 5) == 0) {
    plan.schedule = ScheduleKind::dualpipe;
    plan.virtual_stages = 1;
  }
  if (plan.pipeline > 1 && pairs && plan.schedule != ScheduleKind::dualpipe) {
    plan.schedule = ScheduleKind::interleaved;
    plan.virtual_stages = random.pick({2, 3});
  }
  s.workload = test::training(random.pick({512, 2048, 4096}),
                              plan.data * plan.microbatch * plan.pipeline * random.pick({1, 2, 3}));
  if (experts && random.below(4) == 0) {
    s.workload.expert_load.distribution = LoadDistribution::power_law;
    s.workload.expert_load.exponent = random.between(0.2, 1.5);
  }
  drawn.text = test::describe(seed, plan) + ' ' + stack + " on " + cluster +
               (experts ? " ep " + std::to_string(plan.expert) : std::string());
  if (!problems.empty()) s.system.fabric = {};
  return drawn;
}

/// Seconds, or 0 where the plan does not run.
double step_of(const Setting& setting, const ParallelPlan& plan, const FaultSet& faults = {}) {
  const SimulateOptions options{.time_infeasible = true, .collective_tolerance = kRounding};
  const Prediction p = Simulator(setting, options).run(plan, faults);
  return p.status == Status::ok || p.status == Status::memory ? p.step_time.value() : 0;
}

struct Gains {
  double band = kRounding;
  int plans = 0, tried = 0, gained = 0;
  double largest = 0;
  std::string where;

  void add(double slower, double faster, const std::string& text) {
    if (slower <= 0) return;
    ++tried;
    const double gain = 1 - slower / faster;
    if (gain <= band) return;
    ++gained;
    if (gain <= largest) return;
    largest = gain;
    where = text;
  }
};

void expect_none(const Gains& gains, int plans) {
  EXPECT_EQ(gains.gained, 0) << "of " << gains.tried << ", at most " << gains.largest << ": " << gains.where;
  EXPECT_GE(gains.plans, test::at_least(plans));
}

void try_faults(const Drawn& drawn, double healthy, test::ScenarioGenerator& random, Gains& gains) {
  const network::Fabric fabric(drawn.setting.system.fabric);
  const auto rank = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(drawn.plan.gpus())));
  std::vector<std::pair<std::string, FaultSet>> faults(4);
  faults[0].first = "slow device";
  faults[0].second.devices = {{rank, random.between(0.3, 0.99), 1}};
  faults[1].first = "slow memory";
  faults[1].second.devices = {{rank, 1, random.between(0.3, 0.99)}};
  for (std::size_t i = 2; i < faults.size() && !fabric.links().empty(); ++i) {
    const auto link = static_cast<std::int32_t>(random.below(fabric.links().size()));
    faults[i].first = "link " + std::to_string(link);
    faults[i].second.links = {
        {link, random.between(0.1, 0.95), random.pick({0.0, 1.0}) * Seconds(2e-5), false}};
  }
  for (const auto& [name, set] : faults)
    gains.add(step_of(drawn.setting, drawn.plan, set), healthy, drawn.text + ' ' + name);
}

void try_hardware(const Drawn& drawn, double now, test::ScenarioGenerator& random, Gains& gains) {
  const double factor = random.pick({1.05, 1.4, 3.0});
  const auto better = [&](std::string_view name, const auto& change) {
    Setting setting = drawn.setting;
    change(setting.system);
    gains.add(now, step_of(setting, drawn.plan), drawn.text + " better " + std::string(name));
  };
  for (std::size_t d = 0; d < drawn.setting.system.fabric.dimensions.size(); ++d) {
    better("bandwidth",
           [&](System& s) { s.fabric.dimensions[d].bandwidth = factor * s.fabric.dimensions[d].bandwidth; });
    better("latency",
           [&](System& s) { s.fabric.dimensions[d].latency = s.fabric.dimensions[d].latency / factor; });
  }
  better("call", [&](System& s) { s.stack.communication.call = s.stack.communication.call / factor; });
  // Under ZeRO-1 and 2 a stage's first forward hides a part of its gather of weights, which is in its tail
  // (stage_tails.h): a shorter one hides less, also where the end of the pipeline waits for other stages.
  const bool gathers = drawn.plan.zero_stage == 1 || drawn.plan.zero_stage == 2;
  if (gathers && drawn.plan.pipeline > 1 && drawn.setting.system.stack.communication.gather_overlap > 0)
    return;
  better("memory",
         [&](System& s) { s.device.hbm.bandwidth_per_stack = factor * s.device.hbm.bandwidth_per_stack; });
  better("peak", [&](System& s) {
    for (double& flops : s.device.sm.tensor_flops_per_clock) flops *= factor;
    s.device.sm.vector_flops_per_clock *= factor;
  });
}

/// One sick link after another.
void try_further_links(const Drawn& drawn, double healthy, test::ScenarioGenerator& random, Gains& gains) {
  const network::Fabric fabric(drawn.setting.system.fabric);
  for (int i = 0; i < 3 && !fabric.links().empty(); ++i) {
    FaultSet faults;
    double before = healthy;
    for (int more = 0; more < 3; ++more) {
      const auto link = static_cast<std::int32_t>(random.below(fabric.links().size()));
      faults.links.push_back({link, random.pick({0.1, 0.25, 0.5, 0.75}), Seconds(0), false});
      const double now = step_of(drawn.setting, drawn.plan, faults);
      gains.add(now, before, drawn.text + " link " + std::to_string(link) + " on " + std::to_string(more));
      before = now;
    }
  }
}

template <class Try>
Gains try_plans(std::uint64_t first, int plans, bool pairs, const Try& attempt, double band = kRounding) {
  const yaml::Catalog catalog({test::source_dir()});
  Gains gains;
  gains.band = band;
  for (std::uint64_t seed = first;
       gains.plans < plans && seed < first + 40 * static_cast<std::uint64_t>(plans); ++seed) {
    const Drawn drawn = draw(seed, catalog, pairs);
    if (drawn.setting.system.fabric.dimensions.empty() || (pairs && !runs_pairs(drawn))) continue;
    const double now = step_of(drawn.setting, drawn.plan);
    if (now <= 0) continue;
    ++gains.plans;
    test::ScenarioGenerator random(seed + 7000000);
    attempt(drawn, now, random, gains);
  }
  return gains;
}

TEST(LawsSlower, NothingSickHelpsAnyPlan) {
  expect_none(try_plans(1, test::cases(500), false, try_faults), 500);
}

TEST(LawsSlower, NothingSickHelpsPairsOfPasses) {
  expect_none(try_plans(100001, test::cases(400), true, try_faults), 400);
}

TEST(LawsSlower, NoFurtherSickLinkHelpsAnyPlan) {
  expect_none(try_plans(1, test::cases(300), false, try_further_links, kSharesBand), 300);
}

TEST(LawsSlower, NoBetterHardwareSlowsPairsOfPasses) {
  expect_none(try_plans(200001, test::cases(250), true, try_hardware), 250);
  expect_none(try_plans(7400097, test::cases(1), true, try_hardware), 1);
  expect_none(try_plans(7402558, test::cases(1), true, try_hardware), 1);
}

// Hosts and links that set the pace, chunks of unequal length.
TEST(LawsSlower, NoBetterHardwareSlowsWhatOthersSetThePaceOf) {
  for (const std::uint64_t seed : {8000940, 8002115, 8002392, 8004594})
    expect_none(try_plans(seed, test::cases(1), false, try_hardware), 1);
  for (const std::uint64_t seed : {8012064, 8029887})
    expect_none(try_plans(seed, test::cases(1), true, try_hardware), 1);
}

TEST(LawsSlower, NoBetterHardwareSlowsAnyPlan) {
  expect_none(try_plans(8001100, test::cases(600), false, try_hardware, kSharesBand), 600);
}

// ---- one pair ----

using step::PairStep;

/// Compute and exchanges in turns.
struct Chain {
  std::vector<double> compute, exchanges;

  [[nodiscard]] std::vector<PairStep> steps() const {
    std::vector<PairStep> list;
    for (std::size_t i = 0; i < compute.size(); ++i) {
      if (i > 0) {
        list.push_back({PairStep::Kind::exchange});
        list.push_back({PairStep::Kind::wait, exchanges[i - 1]});
      }
      list.push_back({PairStep::Kind::compute, compute[i]});
    }
    return list;
  }
};

Chain random_chain(test::ScenarioGenerator& random, double exchange) {
  Chain chain;
  const std::uint64_t count = random.below(12);
  for (std::uint64_t i = 0; i <= count; ++i) {
    chain.compute.push_back(random.coin() ? random.between(0, 1) : random.between(0, 10));
    if (i < count) chain.exchanges.push_back(random.between(0, exchange));
  }
  return chain;
}

/// Checks that the pair computes and exchanges all of both, in the order of each.
double time_of(const Chain& forward, const Chain& backward, double overlap, double kept) {
  double computed = 0, all = 0;
  std::size_t joins = 0;
  const std::vector<PairStep> ahead = forward.steps(), back = backward.steps();
  const step::PairOrder order = step::pair_up(ahead, back, overlap);
  for (const step::PairOrder::Part& part : order.parts) {
    const PairStep& done = (part.backward ? back : ahead)[part.step];
    const bool computes = done.kind == PairStep::Kind::compute;
    (computes ? computed : all) += computes ? part.seconds : done.seconds;
    if (done.kind == PairStep::Kind::wait) ++joins;
  }
  EXPECT_EQ(joins, forward.exchanges.size() + backward.exchanges.size());
  for (const Chain* chain : {&forward, &backward})
    for (const double seconds : chain->compute) computed -= seconds;
  EXPECT_NEAR(computed, 0, 1e-9);
  for (const Chain* chain : {&forward, &backward})
    for (const double seconds : chain->compute) all += seconds;
  return all - kept * order.hidden;
}

TEST(LawsSlower, NoLongerPartMakesAPairShorter) {
  for (std::uint64_t seed = 0; seed < test::seeds(3000); ++seed) {
    test::ScenarioGenerator random(seed);
    const double exchange = random.pick({0.5, 5.0, 40.0}), kept = random.pick({0.5, 1.0});
    const double overlap = random.pick({0.0, 0.5, 0.9, 1.0});
    std::vector<Chain> chains = {random_chain(random, exchange), random_chain(random, exchange)};
    const double before = time_of(chains[0], chains[1], overlap, kept);
    Chain& changed = chains[random.below(2)];
    std::vector<double>& parts =
        changed.exchanges.empty() || random.coin() ? changed.compute : changed.exchanges;
    parts[random.below(parts.size())] += random.between(0, 10);
    EXPECT_GE(time_of(chains[0], chains[1], overlap, kept), before * (1 - kRounding)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace shardscape::laws_slower
