// Measures what asking for the cost of a collective takes: remembered, and analysed anew.
#include <benchmark/benchmark.h>

#include "bench/micro/bench_settings.h"
#include "engine/network/prices/collective_prices.h"

namespace shardscape {
namespace {

network::RankGroup group_of(std::int32_t extent, std::int32_t stride) {
  network::RankGroup group;
  group.push(extent, stride);
  return group;
}

/// Calls with 16 sizes in turn on 1,024 ranks; arguments: extent and stride of the group, remembered (1) or anew.
void run(benchmark::State& state, const std::vector<Algorithm>& algorithms, network::CollectiveOp op,
         const FaultSet& faults = {}) {
  Setting setting = bench::training_setting("gpt-175b", "dgx-a100", "megatron-lm", 1024, 2048, 1536);
  setting.system.stack.communication.algorithms = algorithms;
  const network::Fabric fabric(setting.system.fabric);
  const network::CollectiveSetup setup{fabric, setting.system.stack.communication,
                                       setting.system.device.hbm_peak()};
  network::CollectivePrices prices(setup);
  prices.set_faults(faults);
  const network::RankGroup group =
      group_of(static_cast<std::int32_t>(state.range(0)), static_cast<std::int32_t>(state.range(1)));
  int size = 0;
  for (auto _ : state) {
    size = size % 16 + 1;
    if (state.range(2) == 0) {
      prices = network::CollectivePrices(setup);
      prices.set_faults(faults);
    }
    benchmark::DoNotOptimize(prices.time({op, Bytes(1e6 * size), group}));
  }
  state.SetItemsProcessed(state.iterations());
}

/// The ring alone: lock-step inside a node (8 x 1), along a rail (128 x 8), over the whole machine (1024 x
/// 1).
void BM_RingCost(benchmark::State& state) {
  run(state, {Algorithm::ring}, network::CollectiveOp::all_reduce);
}
BENCHMARK(BM_RingCost)
    ->Args({8, 1, 1})
    ->Args({1024, 1, 1})
    ->Args({8, 1, 0})
    ->Args({128, 8, 0})
    ->Args({1024, 1, 0});

/// The algorithms that stack presets have.
void BM_DefaultCost(benchmark::State& state) {
  run(state, {Algorithm::ring, Algorithm::dimension_wise}, network::CollectiveOp::all_reduce);
}
BENCHMARK(BM_DefaultCost)->Args({64, 16, 1})->Args({1024, 1, 1})->Args({64, 16, 0})->Args({1024, 1, 0});

/// Every algorithm, the cheapest chosen.
void BM_AutoCost(benchmark::State& state) {
  run(state, StackProfile::Communication::all_algorithms(), network::CollectiveOp::all_reduce);
}
BENCHMARK(BM_AutoCost)->Args({8, 1, 1})->Args({64, 16, 1})->Args({8, 1, 0})->Unit(benchmark::kMicrosecond);

/// Neighbouring stages exchange messages.
void BM_ChainCost(benchmark::State& state) {
  run(state, {Algorithm::ring}, network::CollectiveOp::chain_pass);
}
BENCHMARK(BM_ChainCost)->Args({16, 64, 1})->Args({16, 64, 0});

/// One link at half its bandwidth: the first rank's way up in its node.
void BM_SickLinkCost(benchmark::State& state) {
  run(state, {Algorithm::ring, Algorithm::dimension_wise}, network::CollectiveOp::all_reduce,
      {{{0, 0.5, {}, false}}});
}
BENCHMARK(BM_SickLinkCost)
    ->Args({8, 1, 0})
    ->Args({128, 8, 0})
    ->Args({1024, 1, 0})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardscape
