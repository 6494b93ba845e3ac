// Do servers that keep copies of busy experts hold, and do, what follows by hand?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/model/block_kinds.h"
#include "engine/model/mlp/moe.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr double kExpertBytes = 3.0 * 512 * 1024 * 2;  // weights of one expert of one layer

/// 16 experts of which a token goes through 4, in four layers.
Setting replica_setting(std::int64_t ranks, std::int64_t redundant) {
  Setting s;
  s.model = test::llama(4, 1024, 16, 16, 4096, 32000);
  s.model.moe = MixtureOfExperts{.experts = 16, .top_k = 4, .expert_ffn_hidden = 512};
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(ranks, 100e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.system.stack.serving.redundant_experts = redundant;
  s.workload = test::inference(800, 100, 2 * ranks);
  return s;
}

ExpertLoad replica_load(std::vector<double> histogram) {
  ExpertLoad load;
  load.distribution = LoadDistribution::histogram;
  load.histogram = std::move(histogram);
  return load;
}

ParallelPlan replica_plan(std::int32_t data, std::int32_t expert) {
  ParallelPlan plan = test::plan_of(1, 1, 1, data);
  plan.expert = expert;
  return plan;
}

Prediction predict_replicas(const Setting& setting, const ParallelPlan& plan,
                            ExecutionMode mode = ExecutionMode::hierarchical) {
  Simulator simulator(setting, {.mode = mode});
  const Prediction out = simulator.run(plan);
  EXPECT_EQ(out.status, Status::ok) << name_of(out.reason);
  return out;
}

model::ExpertShare share_of(const Setting& setting, const ParallelPlan& plan, std::int32_t tokens,
                            std::int32_t member = model::LayerKey::kBusiest) {
  const ParallelPlan served = with_replicas(plan, setting.model, setting.system.stack.serving);
  model::LayerKey key = model::serving_layer_key(served, tokens);
  key.expert_rank = member;
  return model::expert_share(model::OperatorBuilder(setting, key, 1, 1000, model::Mode::decode));
}

/// By how many standard deviations the largest of 4 and of 6 normal values is expected above their mean (Harter 1961,
/// Biometrika 48, table 1; of 4: 3 / sqrt(pi) (1/2 + asin(1/3) / pi)).
constexpr double kLargestOf4 = 1.0294, kLargestOf6 = 1.2672;

// Each of four ranks holds (16 + 4) / 4 experts in place of 4. They even out what one expert is more popular than
// another; what is left is the chance by which the 16,000 choices of all ranks fall, each on this one with p = 1/4:
// binomial, with variance 16,000 p (1 - p). Without them popularities come on top, exponential and independent: the
// share of four of sixteen has the law Beta(4, 12), whose variance is p (1 - p) / 17. The shares are nearly normal.
TEST(RedundantExperts, OfBalancedLoadsEvenPopularityOutAndCostMemory) {
  const double choices = 16'000, rows = choices / 4, chance = choices * 3 / 16, popularity = 3.0 / 16 / 17;
  const auto more = [&](std::int64_t redundant) {
    return share_of(replica_setting(4, redundant), replica_plan(4, 4), 1000).rows - rows;
  };
  EXPECT_NEAR(more(4) / (kLargestOf4 * std::sqrt(chance)), 1, 0.05);
  EXPECT_NEAR(more(0) / (kLargestOf4 * std::sqrt(chance + choices * choices * popularity)), 1, 0.08);
  for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
    const Prediction plain = predict_replicas(replica_setting(4, 0), replica_plan(4, 4), mode);
    const Prediction copies = predict_replicas(replica_setting(4, 4), replica_plan(4, 4), mode);
    EXPECT_NEAR((copies.memory.weights - plain.memory.weights).value(), 4 * kExpertBytes, 1);
    EXPECT_EQ(copies.memory.kv_cache, plain.memory.kv_cache);
    EXPECT_LT(copies.ttft, plain.ttft);
    EXPECT_LT(copies.itl, plain.itl);
    EXPECT_LT(copies.e2e, plain.e2e);
  }
}

// One expert of 5 parts of 20, which every token chooses (4 of a token's choices x 5/20), 15 of one part. In order the
// first rank has 1 + 3 x 0.2 = 1.6 of 4 choices; with four copies all twenty slots have 0.2, and each rank the mean.
TEST(RedundantExperts, TakeOverFromTheBusiest) {
  std::vector<double> parts(16, 1);
  parts.front() = 5;
  Setting plain = replica_setting(4, 0), copies = replica_setting(4, 4);
  plain.workload.expert_load = copies.workload.expert_load = replica_load(parts);
  const double tokens = 4 * 100;
  EXPECT_NEAR(share_of(plain, replica_plan(4, 4), 100).rows, 1.6 * tokens, 1e-9 * tokens);
  for (const std::int32_t member : {model::LayerKey::kBusiest, 0, 1, 2, 3})
    EXPECT_NEAR(share_of(copies, replica_plan(4, 4), 100, member).rows, tokens, 1e-9 * tokens) << member;
  const Prediction before = predict_replicas(plain, replica_plan(4, 4));
  const Prediction after = predict_replicas(copies, replica_plan(4, 4));
  EXPECT_LT(after.ttft, before.ttft);
  EXPECT_LT(after.memory.activations, before.memory.activations);
}

TEST(RedundantExperts, BringTheBusiestDownButNotBelowTheMean) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    ExpertLoad law;
    law.distribution = LoadDistribution::power_law;
    law.exponent = 1.2;
    law.seed = seed;
    const double mean = 4.0 * 1000;
    double in_order = 1e300;
    for (const std::int64_t redundant : {0, 16, 48}) {
      Setting s = replica_setting(4, redundant);
      s.workload.expert_load = law;
      const double rows = share_of(s, replica_plan(4, 4), 1000).rows;
      double all = 0;
      for (std::int32_t member = 0; member < 4; ++member)
        all += share_of(s, replica_plan(4, 4), 1000, member).rows;
      EXPECT_NEAR(all, 4 * mean, 1e-9 * all);  // no token is lost
      EXPECT_LT(rows, in_order);
      EXPECT_GE(rows, mean * (1 - 1e-12));
      if (redundant == 0) in_order = rows;
    }
  }
}

// 16 experts and 2 copies on 6 ranks: two ranks have three whole ones where the mean is 16/6. Each of the 24,000 choices
// of all ranks falls on such a one with p = 3/16; the busiest has what the largest of six has more.
TEST(RedundantExperts, LetExpertsDivideThatDoNot) {
  const Setting s = replica_setting(6, 2);
  const double choices = 24'000, p = 3.0 / 16;
  const double more = share_of(s, replica_plan(6, 6), 1000).rows - p * choices;
  EXPECT_NEAR(more / (kLargestOf6 * std::sqrt(choices * p * (1 - p))), 1, 0.05);
  EXPECT_GT(predict_replicas(s, replica_plan(6, 6)).itl, Seconds(0));
}

TEST(RedundantExperts, DivideByTheirRanks) {
  const auto reason = [](std::int64_t redundant, const ParallelPlan& plan) {
    return Simulator(replica_setting(plan.data, redundant), SimulateOptions{}).run(plan).reason;
  };
  EXPECT_EQ(reason(2, replica_plan(4, 4)), Reason::slots_by_ranks);
  EXPECT_EQ(reason(0, replica_plan(6, 6)), Reason::experts_by_ranks);
  EXPECT_EQ(reason(48, replica_plan(4, 4)), Reason::none);
  EXPECT_EQ(reason(52, replica_plan(4, 4)), Reason::slots_by_ranks);  // a fifth of each expert on four ranks
  EXPECT_EQ(reason(2, replica_plan(4, 1)), Reason::none);  // nothing is dealt, and nothing kept twice
}

TEST(RedundantExperts, PoolsKeepTheirOwn) {
  Setting s = replica_setting(6, 4);
  ParallelPlan plan = replica_plan(4, 4);
  plan.prefill = {1, 1, 2, 2, 1, 0};
  s.system.stack.serving.prefill_redundant_experts = 2;
  const Prediction two = predict_replicas(s, plan);
  s.system.stack.serving.prefill_redundant_experts = 4;
  const Prediction four = predict_replicas(s, plan);
  // (16 + 4) / 2 in place of (16 + 2) / 2 experts in each of four layers.
  EXPECT_NEAR((four.prefill_memory_peak - two.prefill_memory_peak).value(), 4 * kExpertBytes, 1);
  s.system.stack.serving.prefill_redundant_experts = 3;
  EXPECT_EQ(Simulator(s, SimulateOptions{}).run(plan).reason, Reason::slots_by_ranks);
}

TEST(RedundantExperts, BothModesAgree) {
  ExpertLoad law;
  law.distribution = LoadDistribution::power_law;
  law.exponent = 1.2;
  Setting s = replica_setting(4, 16);
  s.workload.expert_load = law;
  const Prediction fast = predict_replicas(s, replica_plan(4, 4));
  const Prediction slow = predict_replicas(s, replica_plan(4, 4), ExecutionMode::flattened);
  EXPECT_NEAR(slow.itl / fast.itl, 1, 0.02);
  EXPECT_NEAR(slow.ttft / fast.ttft, 1, 0.02);
}

// DeepEP's kernels: low latency where all sequences decode, normal ones where prompts are read; a copy for each of the
// 4 experts of 8 tokens, of 1,024 values in 2 bytes, or out in fp8 with a scale of 4 bytes for each 128.
TEST(ServedKernels, AreThoseOfTheIteration) {
  Setting s = replica_setting(4, 0);
  s.system.stack.serving.dispatch = ServedDispatch::kernels;
  const model::LayerKey key = model::serving_layer_key(replica_plan(4, 4), 8);
  const auto call = [&](const std::vector<model::Operator>& ops, std::string_view name) {
    return std::ranges::find(ops, name, &model::Operator::name)->forward_comm;
  };
  using network::CollectiveOp;
  const auto decode = [&] { return model::decode_block_operators(s, 0, key, 1000); };
  const auto prompts = [&] {
    return model::block_operators(s, 0, model::serving_layer_key(replica_plan(4, 4), 1), 8,
                                  model::Mode::prefill);
  };
  EXPECT_EQ(call(decode(), "dispatch").op, CollectiveOp::low_latency_dispatch);
  EXPECT_EQ(call(decode(), "combine").op, CollectiveOp::low_latency_combine);
  EXPECT_EQ(call(prompts(), "dispatch").op, CollectiveOp::expert_dispatch);
  EXPECT_EQ(call(prompts(), "combine").op, CollectiveOp::expert_combine);
  for (const auto& ops : {decode(), prompts()}) {
    EXPECT_DOUBLE_EQ(call(ops, "dispatch").bytes.value(), 8.0 * 4 * 1024 * 2);
    EXPECT_DOUBLE_EQ(call(ops, "combine").bytes.value(), 8.0 * 4 * 1024 * 2);
  }
  s.system.stack.experts.fp8_dispatch = true;
  s.workload.precision = PolicyName::fp8;
  EXPECT_DOUBLE_EQ(call(decode(), "dispatch").bytes.value(), 8.0 * 4 * 1024 * (1 + 4.0 / 128));
  EXPECT_DOUBLE_EQ(call(decode(), "combine").bytes.value(), 8.0 * 4 * 1024 * 2);
}

}  // namespace
}  // namespace shardscape
