// Models with experts that get unequal loads: hierarchical against flattened on random plans, and laws of loads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "engine/model/block_kinds.h"
#include "engine/simulate.h"
#include "engine/spec/parallel_groups.h"
#include "engine/step/layers/price_layers.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/prediction_fields.h"
#include "tests/support/seeds.h"

namespace shardscape::laws_experts {
namespace {

Prediction in_mode(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode,
                   const FaultSet& faults = {}) {
  return Simulator(setting, {.reference = false, .time_infeasible = true, .mode = mode}).run(plan, faults);
}

bool has_time(const Prediction& p) { return p.status == Status::ok || p.status == Status::memory; }

/// 64 experts in all but the first of eight layers, on nodes of eight.
Setting experts_setting(std::int64_t gpus) {
  Setting s;
  s.model = test::llama(8, 2048, 32, 8, 8192, 32000);
  MixtureOfExperts moe;
  moe.experts = 64;
  moe.top_k = 4;
  moe.expert_ffn_hidden = 1024;
  moe.shared_experts = 1;
  moe.shared_ffn_hidden = 1024;
  moe.first_dense_layers = 1;
  s.model.moe = moe;
  s.system.device = test::round_device();
  s.system.fabric = {"nodes", {test::dimension("inner", DimensionKind::switched, {8}, 300e9, 1e-6)}};
  if (gpus > 8) {
    s.system.fabric.dimensions.push_back(
        test::dimension("outer", DimensionKind::switched, {gpus / 8}, 50e9, 2e-6));
    s.system.fabric.dimensions.back().scope = LinkScope::scale_out;
  }
  s.system.stack = test::plain_stack();
  s.system.stack.attention = AttentionKernel::flash;
  s.system.stack.partition = PartitionRule::balanced;
  s.system.stack.communication.call = Seconds(1e-5);
  s.system.stack.communication.rank_step = Seconds(2e-6);
  s.workload = test::training(4096, 2 * gpus);
  return s;
}

ExpertLoad power_law(double exponent, std::uint64_t seed) {
  ExpertLoad load;
  load.distribution = LoadDistribution::power_law;
  load.exponent = exponent;
  load.seed = seed;
  return load;
}

/// Any plan that deals experts to two ranks or more; a quarter of those with stages run dualpipe.
ParallelPlan random_expert_plan(test::ScenarioGenerator& random, const Setting& setting) {
  for (;;) {
    ParallelPlan plan = random.plan(setting);
    plan.order = random.coin() ? kDefaultRankOrder : plan.order;
    plan.expert = random.pick({2, 4, 8, 16, 32, 64});
    plan.expert_tensor = random.pick({1, 1, 1, 2});
    plan.microbatch = 1;
    if (plan.pipeline > 1 && random.below(4) == 0) {
      plan.schedule = ScheduleKind::dualpipe;
      plan.virtual_stages = 1;
    }
    if (plan.pipeline <= 4 && plan.context <= 8 && folds_evenly(plan)) return plan;
  }
}

std::string describe_experts(std::uint64_t seed, const Setting& setting, const ParallelPlan& plan) {
  return test::describe(seed, plan) + " ep " + std::to_string(plan.expert) + " etp " +
         std::to_string(plan.expert_tensor) + " exponent " +
         std::to_string(setting.workload.expert_load.exponent);
}

/// Counts the kinds of plans that have been compared.
struct PlansSeen {
  int all = 0, both_ways = 0, interleaved = 0, many_ranks = 0;
  std::array<int, 4> zero{};
  std::array<int, 3> recompute{};

  void add(const ParallelPlan& plan) {
    ++all;
    both_ways += plan.schedule == ScheduleKind::dualpipe ? 1 : 0;
    interleaved += plan.schedule == ScheduleKind::interleaved ? 1 : 0;
    many_ranks += plan.expert >= 16 ? 1 : 0;
    ++zero[static_cast<std::size_t>(plan.zero_stage)];
    ++recompute[static_cast<std::size_t>(plan.recompute)];
  }
};

/// A stack that hides, defers and scatters in any combination.
void randomise(StackProfile& stack, test::ScenarioGenerator& random) {
  stack.partition = random.coin() ? PartitionRule::balanced : PartitionRule::uniform;
  stack.zero2_gradients = random.coin() ? Zero2Gradients::per_microbatch : Zero2Gradients::last_microbatch;
  stack.zero_slice = Seconds(1e-6);
  stack.head.deferred_weight_gradient = random.coin();
  stack.head.deferral_limit = random.pick({0, 3});
  stack.communication.data_overlap = random.pick({0.0, 0.5, 1.0});
  stack.communication.data_hidden = random.pick({0.4, 1.0});
  stack.communication.gather_overlap = random.pick({0.0, 0.7});
  stack.communication.expert_overlap = random.pick({0.0, 0.5, 1.0});
  stack.communication.expert_hidden = random.pick({0.5, 1.0});
  stack.communication.overlapped_exchanges =
      random.coin() ? OverlappedExchanges::between_domains : OverlappedExchanges::everywhere;
  stack.communication.bucket = Bytes(random.pick({1e6, 25e6}));
  stack.communication.scatter_boundaries = random.coin();
  stack.communication.pipeline_async = random.coin();
}

// A stage and its mirror make their calls together, whichever of their chunks each of them begins with: what one of
// them hides of the gather of weights, the other hides as well, or both wait for ever.
TEST(LawsExperts, ExecutedDualpipeEnds) {
  int ended = 0, hidden = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(60); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = experts_setting(random.pick({16, 32}));
    setting.model.layers = random.pick({6, 8, 11});
    setting.model.moe->first_dense_layers = random.pick({0, 1, 3});
    setting.model.moe->mtp_layers = random.pick({0, 1});
    if (random.below(4) == 0) setting.model.moe.reset();
    randomise(setting.system.stack, random);
    setting.system.stack.partition = PartitionRule::balanced;
    ParallelPlan plan = random_expert_plan(random, setting);
    if (plan.pipeline == 1) continue;
    if (!setting.model.moe) plan.expert = plan.expert_tensor = 1;
    plan.schedule = ScheduleKind::dualpipe;
    plan.virtual_stages = 1;
    plan.zero_stage = plan.data * plan.context > 1 ? random.pick({0, 1, 1}) : 0;
    if (!has_time(in_mode(setting, plan, ExecutionMode::hierarchical))) continue;
    const Prediction executed = in_mode(setting, plan, ExecutionMode::flattened);
    EXPECT_TRUE(has_time(executed)) << describe_experts(seed, setting, plan);
    ++ended;
    hidden += plan.zero_stage == 1 && setting.system.stack.communication.gather_overlap > 0 ? 1 : 0;
  }
  EXPECT_GE(ended, test::at_least(15));
  EXPECT_GE(hidden, test::at_least(2));
}

// Plans that differ in a few choices share the times of layers, stages, boundaries and data parallelism: each is to
// come out as if it had been the only one, to the last bit, whatever schedule the one before it had.
TEST(LawsExperts, NeighboursShareWithoutATrace) {
  int timed_plans = 0, both_ways = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(40); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = experts_setting(16);
    setting.workload = test::training(4096, 256);
    setting.model.moe->mtp_layers = random.pick({0, 1});
    randomise(setting.system.stack, random);
    const SimulateOptions options{.reference = false, .time_infeasible = true};
    Simulator simulator(setting, options);
    ParallelPlan plan;
    for (int i = 0; i < 40; ++i) {
      const ParallelPlan other = random_expert_plan(random, setting);
      if (i % 10 == 0) plan = other;
      if (random.coin()) plan.recompute = other.recompute;
      if (random.below(4) == 0) plan.order = other.order;
      plan.microbatch = random.pick({1, 2});
      if (plan.data * plan.context > 1) plan.zero_stage = static_cast<std::int32_t>(random.below(4));
      if (plan.pipeline > 1) {
        plan.schedule = random.pick({ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
                                     ScheduleKind::zero_bubble, ScheduleKind::dualpipe});
        plan.virtual_stages = plan.schedule == ScheduleKind::interleaved ? random.pick({2, 4}) : 1;
      }
      const Prediction out = simulator.run(plan);
      const std::vector<std::string> differences =
          test::differences(Simulator(setting, options).run(plan), out, 0);
      ASSERT_TRUE(differences.empty())
          << describe_experts(seed, setting, plan) << ": " << differences.front();
      if (!has_time(out)) continue;
      ++timed_plans;
      both_ways += plan.both_ways() ? 1 : 0;
      if (random.below(4) == 0) (void)simulator.rerun({{{0, 0.25, Seconds(1e-3)}}});
    }
  }
  if (!test::all_seeds()) return;
  EXPECT_GT(timed_plans, 600);
  EXPECT_GT(both_ways, 50);
}

// The concurrency of a server's setting changes between plans: each is as if it had been the only one, to the last bit,
// replicas that share experts and iterations in half batches included.
TEST(LawsExperts, LoadsLeaveNoTrace) {
  int timed_plans = 0, coupled = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(100); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = experts_setting(16);
    setting.workload = test::inference(random.pick({100, 3000}), random.pick({2, 60}), 16);
    StackProfile::Serving& serving = setting.system.stack.serving;
    serving.dispatch = random.coin() ? ServedDispatch::all_gather : ServedDispatch::kernels;
    serving.two_batch_overlap = random.coin();
    serving.redundant_experts = random.pick({0, 32});
    serving.token_budget = random.pick({512, 8192});
    setting.system.stack.communication.expert_overlap = random.pick({0.0, 0.5, 1.0});
    const SimulateOptions options{.reference = false, .time_infeasible = true};
    Simulator simulator(setting, options);
    for (int i = 0; i < 20; ++i) {
      setting.workload.concurrency = random.pick({16, 32, 48, 256, 1024});
      ParallelPlan plan = random_expert_plan(random, setting);
      plan.zero_stage = 0;
      plan.recompute = Recompute::none;
      plan.schedule = ScheduleKind::one_f_one_b;
      const Prediction out = simulator.run(plan);
      const std::vector<std::string> differences =
          test::differences(Simulator(setting, options).run(plan), out, 0);
      ASSERT_TRUE(differences.empty())
          << describe_experts(seed, setting, plan) << ": " << differences.front();
      timed_plans += has_time(out) ? 1 : 0;
      coupled += has_time(out) && plan.data > 1 ? 1 : 0;
    }
  }
  if (!test::all_seeds()) return;
  EXPECT_GT(timed_plans, 300);
  EXPECT_GT(coupled, 50);
}

// A step of unequal experts on 8 GPUs within 1 %, on 64 within 5 %, in any order of ranks.
TEST(LawsExperts, BothModesAgreeOnRandomPlans) {
  for (const std::int64_t gpus : {8, 64}) {
    const int wanted = gpus == 8 ? 40 : test::cases(40);
    PlansSeen seen;
    for (std::uint64_t seed = 0; seed < 800 && seen.all < wanted; ++seed) {
      test::ScenarioGenerator random(seed);
      Setting setting = experts_setting(gpus);
      setting.workload.sequence_length = random.pick({4096, 8192, 16384});
      const ParallelPlan plan = random_expert_plan(random, setting);
      setting.workload.expert_load = power_law(random.between(0.2, 1.5), seed);
      const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
      if (!has_time(h)) continue;
      const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
      seen.add(plan);
      EXPECT_NEAR(h.step_time / f.step_time, 1, gpus == 8 ? 0.01 : 0.05)
          << gpus << ' ' << describe_experts(seed, setting, plan) << " sequences of "
          << setting.workload.sequence_length << " contended " << h.contended_share;
    }
    EXPECT_EQ(seen.all, wanted);
    if (!test::all_seeds()) continue;
    EXPECT_GE(seen.both_ways, 2);
    EXPECT_GE(seen.interleaved, 2);
    EXPECT_GE(seen.many_ranks, gpus == 8 ? 0 : 8);
    EXPECT_GE(*std::ranges::min_element(seen.zero), 4);
    EXPECT_GE(*std::ranges::min_element(seen.recompute), 4);
  }
}

// Calls of ranks that split an expert stand between an exchange and its work and hide beside nothing, in pairs of
// passes as elsewhere.
TEST(LawsExperts, RanksThatSplitAnExpertMakeTheirCallsInBothModes) {
  int plans = 0;
  for (const double overlap : {0.3, 0.6, 1.0}) {
    for (const std::int32_t split : {2, 4, 8, 16}) {
      for (const std::int32_t stages : {1, 2, 4}) {
        for (const double bandwidth : {300e9, 100e9}) {
          Setting setting = experts_setting(64);
          setting.model.moe->expert_ffn_hidden = 4096;
          setting.system.fabric.dimensions.front().bandwidth = BytesPerSecond(bandwidth);
          setting.system.stack.communication.expert_overlap = overlap;
          ParallelPlan plan = test::plan_of(2, 1, stages, 32 / stages);
          plan.order = kDefaultRankOrder;
          plan.expert = 2;
          plan.expert_tensor = split;
          plan.microbatch = 1;
          plan.sequence_parallel = true;
          if (stages > 1) plan.schedule = ScheduleKind::dualpipe;
          if (!folds_evenly(plan)) continue;
          ++plans;
          const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical),
                           f = in_mode(setting, plan, ExecutionMode::flattened);
          EXPECT_NEAR(h.step_time / f.step_time, 1, 0.02)
              << describe_experts(0, setting, plan) << " overlap " << overlap << " at " << bandwidth;
        }
      }
    }
  }
  EXPECT_GE(plans, 60);
}

// Passes in pairs that the host bounds: it launches the layers of both in turn, whichever of the two it is late for.
TEST(LawsExperts, TheHostIsAheadOfBothPassesOfAPair) {
  for (const double forward : {1e-4, 2e-3, 4e-3, 8e-3}) {
    for (const double backward : {1e-4, 2e-3, 4e-3, 8e-3}) {
      for (const std::int32_t stages : {1, 2}) {
        Setting setting = experts_setting(8);
        setting.system.stack.communication.expert_overlap = 1;
        setting.system.stack.host.forward_layer = Seconds(forward);
        setting.system.stack.host.backward_layer = Seconds(backward);
        setting.workload = test::training(4096, 64);
        ParallelPlan plan = test::plan_of(1, 1, stages, 8 / stages);
        plan.expert = plan.data;
        if (stages > 1) plan.schedule = ScheduleKind::dualpipe;
        const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
        const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
        EXPECT_NEAR(h.step_time / f.step_time, 1, 0.04)
            << stages << " stages, launches " << forward << " and " << backward;
      }
    }
  }
}

// The member with most tokens is not always the slowest: of two members, the other one's may be spread over more
// experts. All wait for whoever is slowest, in every part of a pass.
TEST(LawsExperts, TheSlowestMemberSetsThePace) {
  int slower_than_busiest = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = experts_setting(8);
    setting.workload.expert_load = power_law(random.between(0.2, 1.5), seed);
    setting.workload.sequence_length =
        random.pick({16, 64, 512});  // few tokens: weights take longer than products
    ParallelPlan plan = test::plan_of(1, 1, 1, 8);
    plan.expert = random.pick({2, 4, 8});
    plan.expert_tensor = 1;
    model::LayerKey key = model::layer_key(plan, 1);
    const step::LayerKind block = step::block_layer(1);
    const step::LayerCost cost = step::price_layers(setting, key)[block];
    const auto on = [&](std::int32_t member, step::LayerPart part) {
      key.expert_rank = member;
      const std::vector<model::Operator> all = step::training_operators(block, setting, key);
      return step::price_layer(all, setting)[part].device.value();
    };
    for (const step::LayerPart part :
         {step::LayerPart::forward, step::LayerPart::backward, step::LayerPart::weight}) {
      double slowest = 0;
      for (std::int32_t member = 0; member < plan.expert; ++member)
        slowest = std::max(slowest, on(member, part));
      EXPECT_NEAR(cost[part].device.value() / slowest, 1, 1e-12) << seed;
      slower_than_busiest += slowest > 1.001 * on(model::LayerKey::kBusiest, part) ? 1 : 0;
    }
  }
  EXPECT_GE(slower_than_busiest, 3);
}

// The same where shared experts run beside the exchanges.
TEST(LawsExperts, SharedExpertsHideExchangesInBothModes) {
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 400 && seen < test::cases(20); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = experts_setting(8);
    setting.model.moe->shared_ffn_hidden = random.pick({512, 2048, 8192});
    const ParallelPlan plan = random_expert_plan(random, setting);
    if (plan.schedule == ScheduleKind::dualpipe) continue;  // passes in pairs
    setting.workload.expert_load = power_law(random.between(0.2, 1.5), seed);
    const Prediction without = in_mode(setting, plan, ExecutionMode::hierarchical);
    if (!has_time(without)) continue;
    setting.system.stack.experts.shared_overlap = true;
    const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
    const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
    ++seen;
    EXPECT_LE(h.step_time, without.step_time * (1 + 1e-12)) << describe_experts(seed, setting, plan);
    EXPECT_NEAR(h.step_time / f.step_time, 1, 0.01) << describe_experts(seed, setting, plan);
  }
  EXPECT_EQ(seen, test::cases(20));
}

// Where the host sets the pace, a layer with a shared expert is launched in the same time as one without. Neither the
// part of its backward that runs later nor what recomputation repeats takes any of that from where it shows.
TEST(LawsExperts, ASharedExpertMakesNoStepShorter) {
  for (const ScheduleKind schedule :
       {ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble, ScheduleKind::dualpipe}) {
    for (const auto& [recompute, casts] : {std::pair{Recompute::none, false},
                                           {Recompute::selective, false},
                                           {Recompute::full, false},
                                           {Recompute::selective, true}}) {
      Setting shared = experts_setting(8);
      if (casts) {  // kernels of their own before each product, those of the shared expert among them
        shared.workload.precision = PolicyName::fp8;
        shared.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)] = 2048;
        shared.model.latent = LatentAttention{AttentionKind::mla, 256, 128, 32, 64, 64};
        shared.model.head_dim = 96;
        shared.system.stack.quantisation.passes = 1;
        shared.system.stack.experts.forward_layer = Seconds(20e-3);
        shared.system.stack.experts.backward_layer = Seconds(30e-3);
      }
      shared.workload.sequence_length = 256;
      shared.workload.global_batch = 16;
      StackProfile& stack = shared.system.stack;
      stack.host.forward_layer = Seconds(1e-3);
      stack.host.backward_layer = Seconds(2e-3);
      stack.selective_recompute = {casts ? RecomputePart::latent_up : RecomputePart::norms};
      stack.partition = PartitionRule::uniform;
      Setting without = shared;
      without.model.moe->shared_experts = without.model.moe->shared_ffn_hidden = 0;
      ParallelPlan plan = test::plan_of(1, 1, 4, 2);
      plan.schedule = schedule;
      plan.recompute = recompute;
      const Prediction more = in_mode(shared, plan, ExecutionMode::hierarchical),
                       less = in_mode(without, plan, ExecutionMode::hierarchical);
      ASSERT_TRUE(has_time(more) && has_time(less)) << name_of(more.reason) << casts;
      EXPECT_GE(more.step_time, (1 - 1e-9) * less.step_time)
          << name_of(schedule) << ' ' << name_of(recompute) << ' ' << more.step_time / less.step_time - 1;
    }
  }
}

// Kernels that send a copy of a token to each rank or node, in unequal loads: in both modes alike, and sooner there
// than an all-to-all of a copy for each expert. Between nodes 3 %: what ranks with few tokens send back early leaves
// their node's links to the others, or meets what is sent to these.
TEST(LawsExperts, KernelsSendUnequalLoadsInBothModes) {
  for (const std::int64_t gpus : {8, 16}) {
    for (const double exponent : {0.3, 1.2}) {
      Setting setting = experts_setting(gpus);
      setting.workload.expert_load = power_law(exponent, 3);
      ParallelPlan plan = test::plan_of(1, 1, 1, static_cast<std::int32_t>(gpus));
      plan.expert = static_cast<std::int32_t>(gpus);
      plan.zero_stage = 1;
      const Prediction library = in_mode(setting, plan, ExecutionMode::hierarchical);
      setting.system.stack.experts.dispatch = ExpertDispatcher::kernels;
      const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
      const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
      EXPECT_NEAR(h.step_time / f.step_time, 1, gpus == 8 ? 1e-3 : 0.03) << gpus << " exponent " << exponent;
      EXPECT_LT(h.breakdown[TimeClass::expert_comm], library.breakdown[TimeClass::expert_comm]) << gpus;
    }
  }
}

// The more unequal the loads, the longer the step and the more memory the busiest rank needs; in the order in which
// they stand, for the busiest member is what counts.
TEST(LawsExperts, InequalityCosts) {
  Setting setting = experts_setting(8);
  ParallelPlan plan = test::plan_of(1, 1, 1, 8);
  plan.expert = 8;
  double step = 0, memory = 0;
  for (const double hot : {1.0, 1.5, 3.0, 6.0}) {
    ExpertLoad& load = setting.workload.expert_load;
    load.distribution = LoadDistribution::histogram;
    load.histogram.assign(64, 1);
    std::fill_n(load.histogram.begin() + 16, 8, hot);  // the experts of the third member
    const Prediction p = in_mode(setting, plan, ExecutionMode::hierarchical);
    EXPECT_GT(p.step_time.value(), step) << hot;
    EXPECT_GT(p.memory_peak.value(), memory) << hot;
    step = p.step_time.value();
    memory = p.memory_peak.value();
  }
}

// A histogram that gives all alike is what no histogram is, but for products of the tokens an expert gets on average
// rather than rounded; in both modes.
TEST(LawsExperts, EqualHistogramsAreBalanced) {
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    Setting setting = experts_setting(8);
    ParallelPlan plan = test::plan_of(2, 1, 1, 4);
    plan.sequence_parallel = true;
    plan.expert = 4;
    const Prediction balanced = in_mode(setting, plan, mode);
    setting.workload.expert_load.distribution = LoadDistribution::histogram;
    setting.workload.expert_load.histogram.assign(64, 3);
    const Prediction alike = in_mode(setting, plan, mode);
    EXPECT_NEAR(alike.step_time / balanced.step_time, 1, 1e-9);
    EXPECT_NEAR(alike.memory_peak / balanced.memory_peak, 1, 1e-9);
  }
}

// A sick link slows what is sent to experts, and in both modes alike.
TEST(LawsExperts, ASickLinkSlowsDispatchInBothModes) {
  Setting setting = experts_setting(8);
  ParallelPlan plan = test::plan_of(1, 1, 1, 8);
  plan.expert = 8;
  plan.zero_stage = 1;
  setting.workload.expert_load = power_law(1.0, 3);
  FaultSet sick;
  sick.links.push_back({0, 0.1, Seconds(0)});
  Seconds step[2];
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    const Prediction well = in_mode(setting, plan, mode), slow = in_mode(setting, plan, mode, sick);
    EXPECT_GT(slow.breakdown[TimeClass::expert_comm], 1.5 * well.breakdown[TimeClass::expert_comm]);
    EXPECT_GT(slow.step_time, well.step_time);
    step[static_cast<std::size_t>(mode)] = slow.step_time;
  }
  // Executed, what the sick sender owes the others goes on while they work on what they have.
  EXPECT_NEAR(step[0] / step[1], 1, 0.02);
}

// Whose link is sick: members that get as many tokens wait for each other once, in the dispatch, and the combine is
// over behind their work. Of unequal loads the busiest sets the pace, and what a sick link costs one with fewer tokens
// hides behind that; hierarchical pricing does not know whose link it is, and takes the busiest's: longer by as much.
TEST(LawsExperts, SickLinksHideBehindWorkInBothModes) {
  Setting setting = experts_setting(8);
  ParallelPlan plan = test::plan_of(1, 1, 1, 8);
  plan.expert = 8;
  plan.zero_stage = 1;
  for (const double exponent : {0.0, 0.3, 1.0}) {
    if (exponent > 0) setting.workload.expert_load = power_law(exponent, 3);
    for (const double share : {0.1, 0.3, 0.5}) {
      for (const std::int32_t link : {0, 1, 2, 5, 9, 14}) {
        FaultSet sick;
        sick.links.push_back({link, share, Seconds(0)});
        const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical, sick);
        const Prediction f = in_mode(setting, plan, ExecutionMode::flattened, sick);
        EXPECT_GT(h.step_time / f.step_time, 0.98) << exponent << ' ' << share << ' ' << link;
        EXPECT_LT(h.step_time / f.step_time, exponent > 0 ? 1.16 : 1.025)
            << exponent << ' ' << share << ' ' << link;
      }
    }
  }
}

// A member whose links are sick both ways is as late as those that wait for it, so that no exchange hides.
TEST(LawsExperts, NothingHidesBehindAMemberThatIsSickBothWays) {
  const Setting setting = experts_setting(8);
  ParallelPlan plan = test::plan_of(1, 1, 1, 8);
  plan.expert = 8;
  for (const double share : {0.1, 0.3, 0.5}) {
    for (const std::int32_t member : {0, 3, 7}) {
      FaultSet sick;
      for (const std::int32_t link : {2 * member, 2 * member + 1})
        sick.links.push_back({link, share, Seconds(0)});
      const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical, sick);
      const Prediction f = in_mode(setting, plan, ExecutionMode::flattened, sick);
      EXPECT_NEAR(h.step_time / f.step_time, 1, 0.02) << share << ' ' << member;
    }
  }
}

// Servers, too, wait for the busiest rank: priced and executed.
TEST(LawsExperts, ServersWaitForTheBusiest) {
  Setting setting = experts_setting(8);
  setting.workload = test::inference(512, 16, 8);
  ParallelPlan plan = test::plan_of(8, 1, 1, 1);
  plan.expert = 8;
  const Prediction even = in_mode(setting, plan, ExecutionMode::hierarchical);
  setting.workload.expert_load = power_law(1.2, 5);
  const Prediction h = in_mode(setting, plan, ExecutionMode::hierarchical);
  const Prediction f = in_mode(setting, plan, ExecutionMode::flattened);
  EXPECT_GT(h.ttft, even.ttft);
  EXPECT_NEAR(h.ttft / f.ttft, 1, 0.02);
  EXPECT_NEAR(h.itl / f.itl, 1, 0.02);
}

}  // namespace
}  // namespace shardscape::laws_experts
