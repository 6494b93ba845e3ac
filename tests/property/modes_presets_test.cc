// Hierarchical against flattened mode on random plans of what is shipped: every stack that trains, on clusters of every
// kind of fabric, in all schedules and rank orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/network/fabric/fabric.h"
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

/// So many GPUs of a shipped cluster.
void put_on(const char* cluster, std::int64_t gpus, const yaml::Catalog& catalog, Setting& setting) {
  const yaml::Cluster machine = yaml::load_cluster(catalog, cluster).value();
  Problems problems;
  setting.system.fabric = machine.fabric.instantiate(gpus, problems);
  EXPECT_TRUE(problems.empty());
  setting.system.device = machine.device;
}

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
  put_on(cluster, random.pick({8, 16, 32}), catalog, s);
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

FaultSet no_faults(std::uint64_t /*seed*/, const FabricSpec& /*fabric*/) { return {}; }

/// One link of the machine, or both ways of it, at a share of its bandwidth.
FaultSet sick_link(std::uint64_t seed, const FabricSpec& spec) {
  test::ScenarioGenerator random(seed + 777777);
  const network::Fabric fabric(spec);
  const auto link = static_cast<std::int32_t>(random.below(fabric.links().size()));
  FaultSet faults;
  faults.links.push_back({link, random.pick({0.1, 0.25, 0.5, 0.75}), Seconds(0), false});
  const std::int32_t opposite = fabric.reverse_of(link);
  if (opposite >= 0 && random.coin())
    faults.links.push_back({opposite, faults.links.front().derate, Seconds(0), false});
  return faults;
}

/// Dense models on the torus, stages inside a domain or a dimension.
Drawn draw_stages_inside(std::uint64_t seed, const yaml::Catalog& catalog) {
  test::ScenarioGenerator random(seed);
  Drawn drawn;
  Setting& s = drawn.setting;
  const char* const stack = random.pick({"llama3", "megatron-lm", "fsdp"});
  s.model = short_model(random, false);
  s.system.stack = yaml::load_stack(catalog, stack).value();
  put_on("a100-torus2d-ring-64", 64, catalog, s);
  ParallelPlan& plan = drawn.plan;
  plan = random.plan(s);
  plan.microbatch = 1;
  constexpr PlanAxis kT = PlanAxis::tensor, kC = PlanAxis::context, kD = PlanAxis::data,
                     kP = PlanAxis::pipeline;
  plan.order = random.pick({RankOrder{kD, kP, kC, kT}, RankOrder{kT, kP, kC, kD}, RankOrder{kT, kD, kP, kC}});
  s.workload = test::training(4096, plan.data * plan.pipeline * random.pick({1, 2, 3, 4}));
  drawn.text = test::describe(seed, plan) + ' ' + stack;
  return drawn;
}

/// The same where attention meets all keys at once: what differs is the traffic of stages.
Drawn draw_stages_and_gather(std::uint64_t seed, const yaml::Catalog& catalog) {
  Drawn drawn = draw_stages_inside(seed, catalog);
  drawn.setting.system.stack.communication.context_exchange = ContextExchange::gather;
  return drawn;
}

/// Interleaved plans over several nodes with few microbatches, whose messages between chunks share the adapters with
/// gradients and updated weights.
Drawn draw_interleaved(std::uint64_t seed, const yaml::Catalog& catalog) {
  test::ScenarioGenerator random(seed);
  Drawn drawn;
  Setting& s = drawn.setting;
  const char* const stack = random.pick({"hai-llm", "megatron-core", "megatron-core-graphs", "torchtitan"});
  const char* const cluster = random.pick({"dgx-a100", "dgx-h100", "dgx-b200"});
  s.model = test::llama(32, 4096, 32, 8, 14336, 128256);
  s.system.stack = yaml::load_stack(catalog, stack).value();
  put_on(cluster, 32, catalog, s);
  s.system.device.hbm.capacity_per_stack = Bytes(1e13);
  ParallelPlan& plan = drawn.plan;
  plan.tensor = random.pick({1, 2, 4, 8});
  plan.pipeline = random.pick({2, 4});
  plan.context = 32 / (plan.tensor * plan.pipeline) > 1 ? random.pick({1, 1, 2}) : 1;
  plan.data = 32 / (plan.tensor * plan.pipeline * plan.context);
  plan.schedule = ScheduleKind::interleaved;
  plan.virtual_stages = random.pick({2, 4, 8});
  plan.sequence_parallel = plan.tensor > 1 && random.coin();
  plan.zero_stage = random.pick({0, 1});
  s.workload = test::training(8192, plan.data * plan.pipeline * random.pick({1, 1, 2, 4}));
  drawn.text = test::describe(seed, plan) + ' ' + stack + " on " + cluster;
  return drawn;
}

/// Tensor groups that reach over nodes, whose calls meet messages between stages on the adapters.
Drawn draw_calls_across(std::uint64_t seed, const yaml::Catalog& catalog) {
  test::ScenarioGenerator random(seed);
  Drawn drawn;
  Setting& s = drawn.setting;
  const char* const stack = random.pick({"fsdp", "hai-llm", "llama3", "maxtext", "megatron-core-plain",
                                         "megatron-core", "pytorch", "torchtitan"});
  const char* const cluster = random.pick({"dgx-a100", "dgx-h100", "dgx-h800", "dgx-b200"});
  s.model = test::llama(16, 4096, 32, 8, 14336, 32000);
  s.system.stack = yaml::load_stack(catalog, stack).value();
  put_on(cluster, 32, catalog, s);
  ParallelPlan& plan = drawn.plan;
  plan.tensor = random.pick({2, 4});
  plan.pipeline = random.pick({2, 4, 8});
  plan.context = plan.tensor * plan.pipeline < 32 ? random.pick({1, 1, 2}) : 1;
  plan.data = 32 / (plan.tensor * plan.pipeline * plan.context);
  plan.schedule =
      random.pick({ScheduleKind::one_f_one_b, ScheduleKind::interleaved, ScheduleKind::zero_bubble});
  plan.virtual_stages = plan.schedule == ScheduleKind::interleaved ? 2 : 1;
  plan.sequence_parallel = random.coin();
  plan.order =
      random.pick({RankOrder{PlanAxis::data, PlanAxis::context, PlanAxis::pipeline, PlanAxis::tensor},
                   RankOrder{PlanAxis::context, PlanAxis::data, PlanAxis::pipeline, PlanAxis::tensor},
                   RankOrder{PlanAxis::context, PlanAxis::data, PlanAxis::tensor, PlanAxis::pipeline}});
  s.workload = test::training(4096, plan.data * plan.pipeline * random.pick({1, 2, 4}));
  drawn.text = test::describe(seed, plan) + ' ' + stack + " on " + cluster;
  return drawn;
}

/// Experts that get unequal loads, by a law or as measured, dealt to two ranks or more.
Drawn draw_unequal(std::uint64_t seed, const yaml::Catalog& catalog) {
  Drawn drawn = draw(seed, catalog);
  test::ScenarioGenerator random(seed + 31);
  Setting& s = drawn.setting;
  const auto experts = random.pick({8, 32, 64});
  MixtureOfExperts moe{.experts = experts, .top_k = experts == 8 ? 2 : 4};
  moe.expert_ffn_hidden = experts == 8 ? 14336 : 2048;
  moe.shared_experts = experts == 64 ? 1 : 0;
  moe.shared_ffn_hidden = moe.shared_experts * moe.expert_ffn_hidden;
  s.model.moe = moe;
  ParallelPlan& plan = drawn.plan;
  do {
    plan.expert = random.pick({2, 4, 8, 16, 32});
    plan.expert_tensor = random.pick({1, 1, 1, 2});
  } while (s.system.fabric.size() / plan.pipeline > 1 && !folds_evenly(plan));
  ExpertLoad& load = s.workload.expert_load;
  load.exponent = random.between(0.2, 1.5);
  load.seed = seed;
  load.distribution = random.coin() ? LoadDistribution::power_law : LoadDistribution::histogram;
  if (load.distribution == LoadDistribution::histogram) {
    for (int e = 0; e < experts; ++e) load.histogram.push_back(std::exp(random.between(0, 2)));
  }
  drawn.text += " ep " + std::to_string(plan.expert) + " etp " + std::to_string(plan.expert_tensor) + " of " +
                std::to_string(experts) + ' ' + (load.histogram.empty() ? "power law" : "measured") + ' ' +
                std::to_string(load.exponent);
  return drawn;
}

struct Compared {
  std::vector<double> unmarked;  ///< differences, ascending
  int plans = 0, marked = 0, beyond = 0;
  std::string texts;  ///< descriptions of unmarked plans that differ by more than 5 %
  [[nodiscard]] double p95() const { return unmarked[unmarked.size() * 95 / 100]; }
};

template <class Draw, class Faults>
Compared compare(int plans, std::uint64_t first, const Draw& draw, const Faults& faults) {
  const yaml::Catalog catalog({test::source_dir()});
  Compared compared;
  for (std::uint64_t seed = first; compared.plans < test::cases(plans) && seed < first + 1000; ++seed) {
    const Drawn drawn = draw(seed, catalog);
    const FaultSet sick = faults(seed, drawn.setting.system.fabric);
    const auto in_mode = [&](ExecutionMode mode) {
      return Simulator(drawn.setting, {.reference = false, .time_infeasible = true, .mode = mode})
          .run(drawn.plan, sick);
    };
    const Prediction h = in_mode(ExecutionMode::hierarchical);
    if (h.status != Status::ok && h.status != Status::memory) continue;
    const Prediction f = in_mode(ExecutionMode::flattened);
    if (f.status == Status::unsupported) continue;
    ++compared.plans;
    const double difference = h.step_time / f.step_time - 1;
    if (h.outside_domain()) {
      ++compared.marked;
      continue;
    }
    compared.unmarked.push_back(std::abs(difference));
    if (std::abs(difference) <= 0.05) continue;
    ++compared.beyond;
    compared.texts += '\n' + drawn.text + ": " + std::to_string(difference);
  }
  std::ranges::sort(compared.unmarked);
  testing::Test::RecordProperty("plans", compared.plans);
  testing::Test::RecordProperty("marked", compared.marked);
  testing::Test::RecordProperty("beyond", compared.beyond);
  testing::Test::RecordProperty("p95_per_mille", static_cast<int>(1000 * compared.p95()));
  return compared;
}

TEST(ModesPresets, AgreeOrSaySo) {
  const Compared compared = compare(300, 0, draw, no_faults);
  if (!test::all_seeds()) return;
  EXPECT_LE(compared.p95(), 0.005) << compared.texts;
  EXPECT_LE(compared.beyond, compared.plans / 300) << compared.texts;
  EXPECT_LE(compared.marked, compared.plans / 100);
}

// The busiest member of a group of experts is waited for; what others send meanwhile is under way before, or in its
// way.
TEST(ModesPresets, AgreeUnderUnequalLoads) {
  const Compared compared =
      compare(400, 0, draw_unequal, [](std::uint64_t, const FabricSpec&) { return FaultSet(); });
  if (!test::all_seeds()) return;
  EXPECT_LE(compared.p95(), 0.02) << compared.texts;
  EXPECT_LE(compared.beyond, compared.plans / 100) << compared.texts;
  EXPECT_LE(compared.marked, compared.plans / 50);
}

// Groups of other stages share links and take turns.
TEST(ModesPresets, AgreeWhereStagesShareLinks) {
  const Compared compared = compare(150, 4000, draw_stages_and_gather, no_faults);
  if (!test::all_seeds()) return;
  EXPECT_LE(compared.p95(), 0.03) << compared.texts;
  EXPECT_LE(compared.beyond, compared.plans / 37) << compared.texts;
  EXPECT_LE(compared.marked, compared.plans / 20);
}

// So they do where attention is a ring of kernels whose results are merged.
TEST(ModesPresets, AgreeWhereKeysGoRoundARing) {
  const Compared compared = compare(150, 14000, draw_stages_inside, no_faults);
  if (!test::all_seeds()) return;
  EXPECT_LE(compared.p95(), 0.02) << compared.texts;
  EXPECT_LE(compared.beyond, compared.plans / 150) << compared.texts;
  EXPECT_LE(compared.marked, compared.plans / 16);
}

// Messages between chunks and gradients and weights of the same stages want the same adapters.
TEST(ModesPresets, AgreeWhereMessagesOfChunksMeetGradients) {
  const Compared compared = compare(200, 5555000, draw_interleaved, no_faults);
  if (!test::all_seeds()) return;
  EXPECT_LE(compared.p95(), 0.025) << compared.texts;
  EXPECT_LE(compared.beyond, compared.plans / 100) << compared.texts;
  EXPECT_LE(compared.marked, compared.plans / 20);
}

// Messages between stages and calls of tensor groups over nodes want the same adapters.
TEST(ModesPresets, AgreeWhereMessagesMeetCalls) {
  const Compared compared = compare(150, 31000, draw_calls_across, no_faults);
  if (!test::all_seeds()) return;
  EXPECT_LE(compared.p95(), 0.01) << compared.texts;
  EXPECT_LE(compared.beyond, compared.plans / 150) << compared.texts;
  EXPECT_LE(compared.marked, compared.plans / 50);
}

template <class Draw>
void expect_close(const Draw& draw_plan, const std::vector<std::uint64_t>& seeds, double band) {
  const yaml::Catalog catalog({test::source_dir()});
  for (const std::uint64_t seed : seeds) {
    const Drawn drawn = draw_plan(seed, catalog);
    const auto seconds = [&](ExecutionMode mode) {
      return Simulator(drawn.setting, {.reference = false, .time_infeasible = true, .mode = mode})
          .run(drawn.plan)
          .step_time;
    };
    EXPECT_NEAR(seconds(ExecutionMode::hierarchical) / seconds(ExecutionMode::flattened), 1, band)
        << drawn.text;
  }
}

// Gathers and scatters beside passes meet those of the stages that share their links when the schedule brings them
// together, and only those: plans of many microbatches in all schedules, stages that share links with one other of 32
// among them, and stacks whose compute loses time to traffic.
TEST(ModesPresets, AgreeWhereTrafficOfStagesMeets) {
  expect_close(draw_stages_and_gather,
               {7003445, 7002435, 7001604, 7002310, 7001448, 7000459, 7002953, 7003032, 7002415, 7000872,
                7000920, 7000766, 7001329, 7002124},
               0.035);
}

// Where turns spare much of such traffic, execution may bring more or less of it together.
TEST(ModesPresets, SaySoWhereTrafficOfStagesMayMeet) {
  const yaml::Catalog catalog({test::source_dir()});
  for (const std::uint64_t seed : {21014, 21690, 22062, 23496, 24157}) {
    const Drawn drawn = draw_stages_inside(seed, catalog);
    const Prediction h =
        Simulator(drawn.setting, {.reference = false, .time_infeasible = true}).run(drawn.plan);
    EXPECT_TRUE(h.outside_domain()) << drawn.text << ": " << h.contended_share;
  }
}

// Calls of tensor groups on links that they share come apart with ranks of context groups of many members.
TEST(ModesPresets, AgreeWhereGroupsOfAStageComeApart) {
  expect_close(draw_stages_inside,
               {7000623, 7001311, 7001717, 7001671, 7003675, 7000260, 7010238, 7013202, 7010731, 7010155},
               0.042);
}

// What the host does before a pass hides no traffic, in stages of several chunks either.
TEST(ModesPresets, AgreeWhereChunksHaveALead) { expect_close(draw, {7102423, 7104478}, 0.01); }

/// `slower`: what the sick link adds to the step at least. `of_kind(drawn)`: whether a plan is what the seeds stand
/// for.
template <class Draw, class OfKind>
void expect_close_if_sick(const Draw& draw_plan, const std::vector<std::uint64_t>& seeds, double band,
                          const OfKind& of_kind, double slower = 0.02) {
  const yaml::Catalog catalog({test::source_dir()});
  for (const std::uint64_t seed : seeds) {
    const Drawn drawn = draw_plan(seed, catalog);
    ASSERT_TRUE(of_kind(drawn)) << drawn.text;
    const FaultSet sick = sick_link(seed, drawn.setting.system.fabric);
    const auto seconds = [&](ExecutionMode mode, const FaultSet& faults) {
      return Simulator(drawn.setting, {.reference = false, .time_infeasible = true, .mode = mode})
          .run(drawn.plan, faults)
          .step_time;
    };
    const Seconds priced = seconds(ExecutionMode::hierarchical, sick);
    EXPECT_NEAR(priced / seconds(ExecutionMode::flattened, sick), 1, band) << drawn.text;
    EXPECT_GT(priced / seconds(ExecutionMode::hierarchical, {}), 1 + slower) << drawn.text;
  }
}

const auto staged = [](const Drawn& drawn) { return drawn.plan.pipeline > 1 && drawn.plan.zero_stage >= 2; };

// Gathers of ZeRO-3 cross a sick link in one stage: compute of the others loses no more to theirs than before.
TEST(ModesPresets, AgreeWhereOneStageLosesComputeToASickLink) {
  expect_close_if_sick(draw, {3447, 3504, 4944, 2764, 2288}, 0.005, staged, 0.001);
}

// Sharded activations are gathered right before a product, and again right behind a scatter, so that calls of a row on
// a sick link follow each other after unequal times.
TEST(ModesPresets, AgreeWhereCallsOnASickLinkFollowUnevenly) {
  expect_close_if_sick(draw, {4231, 4712, 2870, 2323}, 0.02,
                       [](const Drawn& drawn) { return drawn.plan.tensor * drawn.plan.context > 1; });
}

// Traffic of every microbatch follows that of the one before, so that its first call saves as much as the others.
TEST(ModesPresets, AgreeWhereTrafficBesidePassesCrossesASickLink) {
  expect_close_if_sick(draw, {3531, 2664, 3560, 2546}, 0.01,
                       [](const Drawn& drawn) { return drawn.plan.zero_stage == 3; });
}

// An exchange of experts between all members of tensor groups lets them begin their next call together.
TEST(ModesPresets, AgreeWhereExchangesOfExpertsJoinLateRanks) {
  expect_close_if_sick(draw, {2321, 2536}, 0.035, [](const Drawn& drawn) {
    return drawn.plan.tensor > 1 && drawn.plan.expert >= drawn.plan.tensor;
  });
}

// Buckets of gradients go along the rings of a node and from there between nodes, where one link is sick: a late rank
// catches up on the latency of its messages.
TEST(ModesPresets, AgreeWhereBucketsCrossASickLinkBetweenNodes) {
  expect_close_if_sick(draw, {4561, 4509, 4110, 3854, 2401}, 0.012,
                       [](const Drawn& drawn) { return drawn.plan.data * drawn.plan.context >= 8; });
}

// Plans that a sick link slows by much are marked (kSickOpen).
TEST(ModesPresets, AgreeOrSaySoWithASickLink) {
  const Compared compared = compare(200, 2000, draw, sick_link);
  if (!test::all_seeds()) return;
  EXPECT_LE(compared.p95(), 0.02) << compared.texts;
  EXPECT_LE(compared.beyond, compared.plans / 200) << compared.texts;
  EXPECT_LE(compared.marked, compared.plans / 4);
}

// In the mode checked a step is that of the flattened mode where the hierarchical one marks it, and else that one's, to
// the bit: healthy, and under faults from a healthy step that was executed or not.
template <class Draw>
void expect_checked(std::uint64_t first, const Draw& draw_plan, int& executed, int& executed_healthy) {
  const yaml::Catalog catalog({test::source_dir()});
  for (std::uint64_t seed = first; seed < first + 60; ++seed) {
    const Drawn drawn = draw_plan(seed, catalog);
    const FaultSet sick = sick_link(seed, drawn.setting.system.fabric);
    const auto simulator = [&](ExecutionMode mode) {
      return Simulator(drawn.setting, {.reference = false, .time_infeasible = false, .mode = mode});
    };
    Simulator prices = simulator(ExecutionMode::hierarchical),
              executions = simulator(ExecutionMode::flattened), checked = simulator(ExecutionMode::checked);
    const auto expect = [&](const Prediction& step, const Prediction& priced, const FaultSet& faults) {
      const bool doubted = priced.outside_domain();
      const Prediction wanted = doubted ? executions.run(drawn.plan, faults) : priced;
      EXPECT_EQ(step.step_time.value(), wanted.step_time.value()) << drawn.text << doubted;
      EXPECT_EQ(step.breakdown.total().value(), wanted.breakdown.total().value()) << drawn.text << doubted;
      EXPECT_EQ(step.mfu, wanted.mfu) << drawn.text << doubted;
      EXPECT_FALSE(step.outside_domain()) << drawn.text;
      executed += doubted;
      executed_healthy += doubted && faults.empty();
    };
    const Prediction healthy = prices.run(drawn.plan), now = checked.run(drawn.plan);
    ASSERT_EQ(healthy.status, now.status) << drawn.text;
    if (healthy.status != Status::ok) continue;
    expect(now, healthy, {});
    expect(checked.rerun(sick), prices.rerun(sick), sick);
    expect(checked.run(drawn.plan, sick), prices.run(drawn.plan, sick), sick);
    // What would take too many events stays as it was priced, with its mark.
    Simulator few(drawn.setting, {.mode = ExecutionMode::checked, .most_events = 1});
    const Prediction priced = prices.run(drawn.plan, sick), kept = few.run(drawn.plan, sick);
    EXPECT_EQ(kept.step_time.value(), priced.step_time.value()) << drawn.text;
    EXPECT_EQ(kept.outside_domain(), priced.outside_domain()) << drawn.text;
  }
}

// Gathers of ZeRO-3 run through the context groups of both replicas, each over two nodes. No member leaves a gather
// before its own part is there, so that replicas hold each other back, as they are priced.
TEST(ModesPresets, AgreeWhereGathersRunThroughReplicas) {
  const yaml::Catalog catalog({test::source_dir()});
  Setting s;
  s.model = yaml::load_model(catalog, "llama2-13b").value();
  s.system.stack = yaml::load_stack(catalog, "pytorch").value();
  put_on("dgx-a100", 32, catalog, s);
  s.workload = test::training(4096, 32);
  for (const auto& [tensor, pipeline, chunks] : {std::array{1, 4, 1}, std::array{2, 2, 4}}) {
    ParallelPlan plan = test::plan_of(tensor, 4, pipeline, 2);
    plan.zero_stage = 3;
    plan.virtual_stages = chunks;
    plan.schedule = chunks > 1 ? ScheduleKind::interleaved : kPlainSchedule;
    plan.order = {PlanAxis::tensor, PlanAxis::pipeline, PlanAxis::context, PlanAxis::data};
    const auto in_mode = [&](ExecutionMode mode) {
      return Simulator(s, {.time_infeasible = true, .mode = mode}).run(plan);
    };
    const Prediction priced = in_mode(ExecutionMode::hierarchical),
                     executed = in_mode(ExecutionMode::flattened);
    EXPECT_NEAR(executed.step_time / priced.step_time, 1, 0.02);
  }
}

// Calls of two lanes of a rank may send the same to the same ranks: one of them does not stand for the other.
TEST(ModesPresets, AgreeWhereCallsOfTwoGroupsAreAlike) {
  const yaml::Catalog catalog({test::source_dir()});
  Setting s;
  test::ScenarioGenerator random(0);
  s.model = short_model(random, true);
  s.model.layers = 11;
  s.model.moe->expert_ffn_hidden = 4096;
  s.system.stack = yaml::load_stack(catalog, "nanotron-a").value();
  put_on("dgx-h800", 32, catalog, s);
  s.workload = test::training(8192, 48);
  ParallelPlan plan = test::plan_of(2, 2, 4, 2);
  plan.sequence_parallel = true;
  plan.recompute = Recompute::selective;
  plan.microbatch = 2;
  plan.expert = 4;
  plan.zero_stage = 2;
  const auto in_mode = [&](ExecutionMode mode) {
    return Simulator(s, {.time_infeasible = true, .mode = mode}).run(plan).step_time;
  };
  EXPECT_NEAR(in_mode(ExecutionMode::flattened) / in_mode(ExecutionMode::hierarchical), 1, 0.02);
}

TEST(ModesPresets, CheckedStepsAreExecutedWhereTheyAreMarked) {
  int executed = 0, healthy = 0;
  expect_checked(2000, draw, executed, healthy);
  EXPECT_GT(executed, 5);
  expect_checked(4000, draw_stages_inside, executed, healthy);
  EXPECT_GE(healthy, 1);
}

}  // namespace
}  // namespace shardscape::modes_presets
