// Do the products of experts keep to what they are made of, and loads add up?
#include "engine/compute/expert_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/a100.h"

namespace shardscape::compute {
namespace {

std::int64_t total(const std::vector<std::int64_t>& tokens) {
  return std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
}

TEST(ExpertLoads, AddUpAndNoneTakesATokenTwice) {
  CounterRng seeds(7, 0);
  for (std::uint64_t i = 0; i < 200; ++i) {
    Routing routing;
    routing.experts = 1 + static_cast<std::int64_t>(seeds.below(300));
    routing.top_k = 1 + static_cast<std::int64_t>(seeds.below(static_cast<std::uint64_t>(routing.experts)));
    routing.tokens = 1 + static_cast<std::int64_t>(seeds.below(5000));
    CounterRng random(i, 1);
    for (const auto& tokens :
         {balanced_tokens(routing), power_law_tokens(routing, 3 * seeds.uniform(), random)}) {
      EXPECT_EQ(total(tokens), routing.tokens * routing.top_k) << i;
      EXPECT_LE(*std::ranges::max_element(tokens), routing.tokens) << i;
      EXPECT_GE(*std::ranges::min_element(tokens), 0) << i;
    }
    const auto even = balanced_tokens(routing);
    EXPECT_LE(*std::ranges::max_element(even) - *std::ranges::min_element(even), 1);
  }
}

TEST(ExpertLoads, ThePowerLawIsOne) {
  // With exponent 1 the logarithm of a share is uniform between 1 and 0.8 tokens: over many experts the share of
  // those above the geometric middle is a half, and the largest is some hundred times the median.
  CounterRng random(3, 0);
  auto tokens = power_law_tokens({100'000, 8, 20'000}, 1, random);
  std::ranges::sort(tokens);
  const auto at = [&](double share) {
    return static_cast<double>(tokens[static_cast<std::size_t>(share * 20'000)]);
  };
  // Quantiles u and v lie apart by (0.8 x 100,000)^(v - u).
  EXPECT_NEAR(at(0.95) / at(0.75), std::pow(80'000, 0.2), 0.1 * std::pow(80'000, 0.2));
  EXPECT_NEAR(at(0.99) / at(0.79), std::pow(80'000, 0.2), 0.15 * std::pow(80'000, 0.2));
}

TEST(ExpertLoads, TheBusiestRankIsFoundAndPutIntoRuns) {
  const std::vector<std::int64_t> tokens = {5, 0, 0, 9, 4, 4, 4, 3};
  const ExpertLoads loads = busiest_rank(tokens, 2);
  ASSERT_EQ(loads.runs.size(), 2U);  // 15 against 14
  EXPECT_EQ(loads.runs[0].tokens, 4);
  EXPECT_EQ(loads.runs[0].experts, 3);
  EXPECT_EQ(loads.tokens(), 15);
  EXPECT_EQ(loads.experts(), 4);
  EXPECT_EQ(busiest_rank(tokens, 4).tokens(), 9);
  EXPECT_EQ(busiest_rank(tokens, 4).active(), 1);
}

double product(const ExpertLoads& loads, double n, double k, const DeviceSpec& device) {
  return grouped_product(loads, n, k, Precision::bf16, device).time.value();
}

TEST(GroupedProduct, OneTileIsItsSteps) {
  // 16 tokens of one expert on 64 columns, 6,400 deep: 100 steps of 506 ns, 3.04 us to start and 2 kB to store at
  // 64 B a clock; 0.8 MB of weights and 0.2 MB of tokens take 0.6 us beside it, a 4-norm that does not show.
  DeviceSpec device = test::a100();
  device.architecture = Architecture::ampere;
  const double body = 100 * 506e-9 + 3.04e-6 + 16 * 64 * 2 / (64 * 1.41e9);
  EXPECT_NEAR(product({{{1, 16}}}, 64, 6400, device), 3e-6 + body, 1e-10);
  // A token more takes another tile, though not another round.
  EXPECT_NEAR(product({{{1, 17}}}, 64, 6400, device), 3e-6 + body, 1e-7);
}

TEST(GroupedProduct, FewTokensStreamTheWeightsOfActiveExperts) {
  DeviceSpec device = test::a100();
  device.architecture = Architecture::hopper;
  const double weights = 64.0 * 4096 * 14336 * 2, hbm = 0.832 * 2039e9;
  const double time = product({{{64, 4}}}, 14336, 4096, device);
  EXPECT_GT(time, weights / hbm);
  EXPECT_LT(time, 1.2 * weights / hbm);
  // Experts without a token cost nothing.
  EXPECT_DOUBLE_EQ(product({{{64, 4}, {64, 0}}}, 14336, 4096, device), time);
}

TEST(GroupedProduct, ManyTokensReachTheShareOfThePeak) {
  DeviceSpec device = test::a100();
  device.architecture = Architecture::ampere;
  device.sustained.tensor = 1;
  const double tokens = 8 * 16384.0, flops = 2 * tokens * 8192 * 8192;
  const double rate = flops / product({{{8, 16384}}}, 8192, 8192, device);
  const double share = rate / device.tensor_peak(Precision::bf16).value();
  EXPECT_LT(share, 0.542);
  EXPECT_GT(share, 0.9 * 0.542);
}

TEST(GroupedProduct, ConvertedWeightsLeaveAShareOfTheRateAndAllOfTheBandwidth) {
  DeviceSpec device = test::a100();
  device.architecture = Architecture::hopper;
  device.sustained.tensor = 1;
  const auto timed = [&](double experts, double tokens, double share) {
    const ExpertLoads loads = {{{experts, tokens}}};
    return grouped_product(loads, 8192, 8192, Precision::bf16, device, {false, false, Precision::fp4, share})
        .time.value();
  };
  // Many tokens: 0.3 x 0.624 of the peak, but for starts and stores of tiles.
  const double rate = 2 * 8 * 4096.0 * 8192 * 8192 / timed(8, 4096, 0.3);
  const double reached = rate / device.tensor_peak(Precision::bf16).value();
  EXPECT_LT(reached, 0.3 * 0.624);
  EXPECT_GT(reached, 0.95 * 0.3 * 0.624);
  // A few stream 4 bits and a scale for each 16 weights; tiles of 16 rows, beside which they come, show in the norm.
  const double bytes = 64.0 * 8192 * 8192 * 9 / 16, hbm = 0.832 * 2039e9;
  EXPECT_GT(timed(64, 2, 1), bytes / hbm);
  EXPECT_LT(timed(64, 2, 1), 1.1 * bytes / hbm);
  EXPECT_LT(timed(64, 2, 0.5), 1.2 * timed(64, 2, 1));
}

TEST(GroupedProduct, SkewCostsWhatIdleTilesCost) {
  const DeviceSpec device = test::a100();
  const double even = product({{{8, 128}}}, 4096, 4096, device);
  const double skewed = product({{{1, 1017}, {7, 1}}}, 4096, 4096, device);
  EXPECT_GT(skewed, even);
  // More tokens for one expert never cost less.
  double before = 0;
  for (double tokens = 1; tokens < 5000; tokens += 37) {
    const double now = product({{{1, tokens}, {7, 64}}}, 2048, 4096, device);
    EXPECT_GE(now, before * (1 - 1e-12)) << tokens;
    before = now;
  }
}

TEST(GroupedProduct, ScalesOfBlocksAreBytes) {
  DeviceSpec device = test::a100();
  device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)] = 4096;
  const ExpertLoads loads = {{{4, 32}}};
  const auto tensor = grouped_product(loads, 1024, 2048, Precision::fp8, device);
  const auto blocks = grouped_product(loads, 1024, 2048, Precision::fp8, device, {true, false});
  const double weights = 4.0 * 1024 * 2048, inputs = 4 * 32 * 2048;
  EXPECT_NEAR((blocks.work.bytes - tensor.work.bytes).value(), weights * 4 / (128 * 128) + inputs * 4 / 128,
              1e-6);
  EXPECT_EQ(tensor.work.flops.value(), 2.0 * 4 * 32 * 1024 * 2048);
}

TEST(ExpertsAlone, BothProductsAndAllChoices) {
  // 6 FLOPs for each value of an expert and choice where it is gated, 4 where not; sums of results besides.
  const DeviceSpec device = test::a100();
  const Routing routing = {512, 4, 16};
  const ExpertLayer gated = {1024, 256, true, 512, 16, false};
  ExpertLayer plain = gated;
  plain.gated = false;
  const auto flops = [&](const ExpertLayer& layer) {
    return routed_experts_alone(routing, {}, 1, layer, Precision::bf16, device).work.flops.value();
  };
  EXPECT_EQ(flops(gated), 512.0 * 4 * (6 * 1024 * 256 + 1024));
  EXPECT_EQ(flops(plain), 512.0 * 4 * (4 * 1024 * 256 + 1024));
}

TEST(ExpertsAlone, PreferredExpertsTakeLongerOverRanks) {
  const DeviceSpec device = test::a100();
  const Routing routing = {8192, 8, 128};
  const ExpertLayer layer = {4096, 1536, true, 8192, 128, false};
  const auto time = [&](std::optional<double> exponent, std::int64_t ranks) {
    return routed_experts_alone(routing, exponent, ranks, layer, Precision::bf16, device).time.value();
  };
  EXPECT_GT(time(1.2, 16), 1.5 * time({}, 16));
  EXPECT_LT(time({}, 16), time({}, 1));
  EXPECT_EQ(time(1.2, 16), time(1.2, 16));
}

}  // namespace
}  // namespace shardscape::compute
