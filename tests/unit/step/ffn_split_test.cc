// Do batches that take turns between attention and experts take what follows by hand, and do the ranks hold the model
// once?
#include "engine/step/serving/ffn_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/details.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

using step::SplitLayer;
using step::SplitRun;

SplitLayer split_layer(double attention, double exchange, double experts, double behind = 0) {
  SplitLayer layer;
  layer.attention[TimeClass::compute] = attention;
  layer.deals = true;
  layer.dispatch = layer.combine = exchange;
  layer.experts[TimeClass::compute] = experts;
  layer.behind[TimeClass::compute] = behind;
  return layer;
}

double run(const std::vector<SplitRun>& layers, std::int64_t batches) {
  return serving::total(step::run_split(layers, batches));
}

// One batch has nobody to wait for: its layers take all that they take, one after the other.
TEST(FfnSplit, OneBatchTakesTheSumOfItsParts) {
  EXPECT_DOUBLE_EQ(run({{split_layer(3, 1, 5, 2), 7}}, 1), 7 * (3 + 1 + 5 + 1 + 2));
}

// MegaScale-Infer, equation 5: with T_f = T_a >= T_c and m T_f >= T_a + T_f + 2 T_c the experts never wait after the
// first batch has come to them, so that L layers of m batches take T_a + T_f + 2 T_c, and T_f (m L - 1) after that.
TEST(FfnSplit, BalancedStagesKeepTheExpertsBusy) {
  for (const std::int32_t layers : {1, 2, 61})
    EXPECT_NEAR(run({{split_layer(4, 1.5, 4), layers}}, 3), (4 + 4 + 2 * 1.5) + 4 * (3 * layers - 1), 1e-9);
}

// With too few batches each waits for itself: m times the slowest place is less than a + f + 2 c, so a layer takes that
// long, and in the last one the other batch is behind by what the slowest place (here the exchange) takes.
TEST(FfnSplit, TooFewBatchesWaitForThemselves) {
  EXPECT_NEAR(run({{split_layer(2, 3, 2), 10}}, 2), 10 * (2 + 2 + 2 * 3) + 3, 1e-9);
}

TEST(FfnSplit, LayersWithoutExpertsStayWithAttention) {
  SplitLayer dense;
  dense.attention[TimeClass::compute] = 5;
  EXPECT_DOUBLE_EQ(run({{dense, 4}}, 3), 4 * 3 * 5);
}

/// The plain way: among the tasks whose batch is ready, each place takes them in the order (layer, batch).
double plain_split(const std::vector<SplitLayer>& layers, std::size_t batches) {
  enum Place : std::size_t { attention, dispatch, experts, combine, places };
  struct Task {
    Place place;
    double seconds;
  };
  std::vector<std::vector<Task>> chains(batches);  // all tasks of a batch, in order
  for (auto& chain : chains) {
    double owed = 0;
    for (const SplitLayer& layer : layers) {
      chain.push_back({attention, owed + serving::total(layer.attention)});
      owed = 0;
      if (!layer.deals) continue;
      chain.push_back({dispatch, layer.dispatch});
      chain.push_back({experts, serving::total(layer.experts)});
      chain.push_back({combine, layer.combine});
      owed = serving::total(layer.behind);
    }
    chain.push_back({attention, owed});
  }
  std::vector<std::size_t> next(batches, 0);
  std::vector<double> ready(batches, 0), free(places, 0);
  double end = 0;
  for (std::size_t done = 0; done < batches * chains.front().size(); ++done) {
    // The task with the least progress is next on its place; of equally far ones that of the first batch.
    const auto batch = static_cast<std::size_t>(std::ranges::min_element(next) - next.begin());
    const Task& task = chains[batch][next[batch]++];
    ready[batch] = free[task.place] = std::max(ready[batch], free[task.place]) + task.seconds;
    end = std::max(end, ready[batch]);
  }
  return end;
}

TEST(FfnSplit, EqualsTasksTakenOneByOne) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CounterRng random(seed, 0);
    const auto number = [&] { return random.uniform(); };
    std::vector<SplitLayer> layers;
    std::vector<SplitRun> runs;
    for (std::size_t i = 0, n = 1 + random.below(6); i < n; ++i) {
      SplitLayer layer = split_layer(number(), number(), number(), number());
      layer.combine = number();
      layer.deals = random.below(4) > 0;
      layers.push_back(layer);
      runs.push_back({layer, 1});
    }
    const auto batches = 1 + random.below(5);
    EXPECT_NEAR(run(runs, static_cast<std::int64_t>(batches)), plain_split(layers, batches), 1e-9) << seed;
  }
}

/// 16 experts of which a token goes through 4, in four layers, on a crossbar.
Setting split_setting(std::int64_t gpus) {
  Setting s;
  s.model = test::llama(4, 1024, 16, 16, 4096, 32000);
  s.model.moe = MixtureOfExperts{.experts = 16, .top_k = 4, .expert_ffn_hidden = 512};
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(gpus, 100e9, 1e-6);
  s.system.stack = test::plain_stack();
  s.workload = test::inference(800, 100, 32);
  return s;
}

ParallelPlan split_plan(std::int32_t attention, std::int32_t ffn) {
  ParallelPlan plan = test::plan_of(1, 1, 1, attention);
  plan.prefill.data = 2;
  plan.ffn = ffn;
  return plan;
}

// Of a byte that A ranks send to F ranks over a crossbar, each of A carries 1 / A, each of F gets 1 / F: the fewer ones
// have the slowest links.
TEST(FfnSplit, TheFewerRanksBoundTheExchange) {
  constexpr double kBandwidth = 100e9;
  const Setting setting = split_setting(8);
  const network::Fabric wires(setting.system.fabric);
  network::PricedNetwork network(wires, setting.system.stack.communication);
  std::vector<std::int32_t> pool(6);
  std::iota(pool.begin(), pool.end(), 2);
  const step::SplitFabric fabric = step::split_fabric(setting, split_plan(2, 4), pool, network);
  EXPECT_NEAR(fabric.dispatch * kBandwidth, 1.0 / 2, 1e-12);
  EXPECT_NEAR(fabric.combine * kBandwidth, 1.0 / 2, 1e-12);
  EXPECT_FALSE(fabric.unreachable);
}

// A rank of attention has all weights but those of experts, and of these each of F ranks has 1 / F.
TEST(FfnSplit, RanksHoldTheModelOnce) {
  const Setting setting = split_setting(8);
  const std::vector<model::StageLayers> layers = {model::all_layers(setting.model)};
  const double experts = 4.0 * 16 * 3 * 512 * 1024 * 2;
  const MemoryUse of_experts = step::expert_ranks_memory(setting, split_plan(2, 4), layers, 16);
  EXPECT_NEAR(of_experts.weights.value(), experts / 4, 1);
  EXPECT_EQ(of_experts.kv_cache, Bytes(0));

  Simulator simulator(setting, SimulateOptions{});
  Details details;
  const Prediction split = simulator.run(split_plan(2, 4), {}, &details),
                   whole = simulator.run(split_plan(6, 0));
  // Each layer's rest: q, k, v, o (16 of 16 heads), the router, two norms; then both tables of 32,000 rows and a norm.
  const double rest = 4.0 * (4 * 1024 * 1024 + 16 * 1024 + 2 * 1024) + 2.0 * 32000 * 1024 + 1024;
  ASSERT_EQ(details.stage_memory.size(), 1U);
  EXPECT_NEAR(details.stage_memory.front().weights.value(), 2 * rest, 1e-3 * rest);
  ASSERT_EQ(details.expert_memory.size(), 1U);
  EXPECT_EQ(details.expert_memory.front().weights, of_experts.weights);
  ASSERT_EQ(split.status, Status::ok) << name_of(split.reason);
  ASSERT_EQ(whole.status, Status::ok);
  // The decode pool without a split holds the experts whole; the pool that prefills is the fullest of the other plan.
  EXPECT_GT(whole.memory_peak.value(), experts);
  EXPECT_GT(split.itl, Seconds(0));
  EXPECT_GT(split.breakdown[TimeClass::expert_comm], Seconds(0));
}

// 32 requests over 2 replicas are 16 each, in three batches of at most 6. Their 12 tokens are 3 for each of 4 ranks of
// experts; each token meets 4 (1 - (3/4)^4) of these, and 1,024 values go there in two bytes each and come back.
TEST(FfnSplit, AnIterationTakesWhatItsLayersTake) {
  Setting setting = split_setting(8);
  // The device's gap between the kernels of a block is of the whole block: paid once, with attention.
  constexpr double kGap = 5e-6;
  setting.system.stack.host.decode_layer = Seconds(0);
  setting.system.stack.host.decode_gap = Seconds(kGap);
  const ParallelPlan plan = split_plan(2, 4);
  step::TokenCosts attention(setting, step::attention_side(plan)), experts(setting, step::expert_side(plan));
  const serving::Iteration batch = step::full_decode(setting.workload, {.clients = 6, .slots = 6});
  const step::PartCost &own = attention.at(step::TokenTable::decode, 6).blocks[0],
                       &theirs = experts.at(step::TokenTable::decode, 3).blocks[0];
  const network::Fabric wires(setting.system.fabric);
  network::PricedNetwork network(wires, setting.system.stack.communication);
  const std::vector<std::int32_t> pool = {2, 3, 4, 5, 6, 7};
  const double latency = step::split_fabric(setting, plan, pool, network).latency;
  const double met = 4 * (1 - std::pow(0.75, 4)), bytes = met * 1024 * 2 * 12;
  const SplitLayer layer =
      split_layer(own.between.front().value() + attention.attention(0, batch).decode + kGap,
                  latency + bytes / 2 / 100e9, theirs.between[1].value(), own.between.back().value());
  const double ends = (attention.at(step::TokenTable::decode, 16).end.device +
                       attention.at(step::TokenTable::head, 16).end.device)
                          .value();
  const Prediction split = Simulator(setting, SimulateOptions{}).run(plan);
  EXPECT_NEAR(split.step_time.value() / (run({{layer, 4}}, 3) + ends), 1, 1e-9);
}

// Tensor groups lie over the ranks of attention alone: 10 of 16, which their stride and extent divide; not so the 14 of
// the pool.
TEST(FfnSplit, TensorGroupsLieOverAttentionAlone) {
  const Setting setting = split_setting(16);
  ParallelPlan plan = split_plan(5, 4);
  plan.tensor = 2;
  plan.order = *parse_rank_order("dp-tp-cp-pp");
  EXPECT_EQ(Simulator(setting, SimulateOptions{}).run(plan).status, Status::ok);
}

TEST(FfnSplit, PlansThatCannotBeSplitAreRefused) {
  Setting setting = split_setting(16);
  const auto reason = [&](const ParallelPlan& plan) {
    return Simulator(setting, SimulateOptions{}).run(plan).reason;
  };
  EXPECT_EQ(reason(split_plan(13, 1)), Reason::split_pool);
  EXPECT_EQ(reason(split_plan(11, 3)), Reason::experts_by_ranks);
  ParallelPlan staged = split_plan(6, 2);
  staged.pipeline = 2;
  EXPECT_EQ(reason(staged), Reason::split_pool);
  setting.model.moe.reset();
  EXPECT_EQ(reason(split_plan(12, 2)), Reason::no_experts);
}

}  // namespace
}  // namespace shardscape
