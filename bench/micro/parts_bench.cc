// Measures the parts that evaluating a design point consists of.
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/micro/bench_settings.h"
#include "engine/compute/gemm.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/schedule/pipeline_memo.h"

namespace shardscape {
namespace {

/// The cost of a product that no memo knows: another shape each time. Argument: tokens, of training or
/// decode.
void BM_Gemm(benchmark::State& state) {
  const Setting setting = bench::training_setting("gpt-175b", "dgx-a100", "megatron-lm", 8, 2048, 8);
  std::int64_t i = 0;
  for (auto _ : state) {
    const std::int64_t n = 1024 + 128 * (i % 97), k = 512 + 64 * (i % 61);
    benchmark::DoNotOptimize(
        compute::gemm({state.range(0), n, k, 1}, Precision::bf16, setting.system.device).time);
    ++i;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Gemm)->Arg(2048)->Arg(8);

/// A collective cost that the memo knows (argument 1) or has to analyse (0), on 1,024 ranks.
void BM_CollectiveCost(benchmark::State& state) {
  const Setting setting = bench::training_setting("gpt-175b", "dgx-a100", "megatron-lm", 1024, 2048, 1536);
  const network::Fabric fabric(setting.system.fabric);
  const network::CollectiveSetup setup{fabric, setting.system.stack.communication,
                                       setting.system.device.hbm_peak()};
  network::CollectivePrices prices(setup);
  network::RankGroup group;
  group.push(64, 16);
  for (auto _ : state) {
    if (state.range(0) == 0) prices = network::CollectivePrices(setup);
    benchmark::DoNotOptimize(prices.time({network::CollectiveOp::all_reduce, Bytes(1e9), group}));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_CollectiveCost)->Arg(1)->Arg(0);

/// One evaluation of a pipeline of 16 uneven stages; arguments: microbatches, production (1) or operation by
/// operation (0).
void BM_Pipeline(benchmark::State& state) {
  schedule::PipelineShape shape{ScheduleKind::one_f_one_b, 16, 1, static_cast<std::int32_t>(state.range(0))};
  std::vector<schedule::StageTime> times(16, {1.0, 2.0});
  times.back() = {1.1, 2.2};
  schedule::PipelineTimer timer;
  for (auto _ : state) {
    if (state.range(1) == 1) {
      benchmark::DoNotOptimize(timer.run(shape, times, {0.01, true}).stages.front());
    } else {
      benchmark::DoNotOptimize(schedule::run_in_order(shape, times, {0.01, true}).front());
    }
  }
  state.SetItemsProcessed(state.iterations() * 2 * state.range(0) * 16);
}
BENCHMARK(BM_Pipeline)
    ->Args({64, 1})
    ->Args({64, 0})
    ->Args({1024, 1})
    ->Args({1024, 0})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardscape
