// Events per second of flattened mode: operators, calls entered, messages drained and received.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/micro/bench_settings.h"
#include "engine/simulate.h"

namespace shardscape {
namespace {

/// A step of Llama 3.1 70B on 64 A100s in a torus, all 80 layers with full recompute; argument: tensor
/// parallel degree, the pipeline has 32 / tp stages and there are two replicas.
void BM_FlattenedStep(benchmark::State& state) {
  const Setting setting =
      bench::training_setting("llama3.1-70b", "a100-torus2d-ring-64", "megatron-lm", 64, 4096, 128);
  ParallelPlan plan;
  plan.tensor = static_cast<std::int32_t>(state.range(0));
  plan.pipeline = 32 / plan.tensor;
  plan.data = 2;
  plan.sequence_parallel = true;
  plan.recompute = Recompute::full;
  Simulator simulator(setting, {.time_infeasible = true, .mode = ExecutionMode::flattened});
  std::int64_t events = 0;
  for (auto _ : state) {
    Details details;
    benchmark::DoNotOptimize(simulator.run(plan, {}, &details).step_time);
    events += details.events;
  }
  state.SetItemsProcessed(events);
}
/// A step of Llama 3.1 405B on H100s, 8 x 16 of them to a replica and 4 microbatches of 8,192 tokens to each.
/// Arguments: GPUs; whether one device is slow, so that hardly any two ranks do the same and every one is executed
/// (label: ranks executed, of all).
void BM_FlattenedSize(benchmark::State& state) {
  const std::int64_t gpus = state.range(0);
  ParallelPlan plan;
  plan.tensor = 8;
  plan.pipeline = 16;
  plan.data = static_cast<std::int32_t>(gpus / 128);
  plan.sequence_parallel = true;
  plan.zero_stage = 2;
  const Setting setting =
      bench::training_setting("llama3.1-405b", "dgx-h100", "llama3", gpus, 8192, 4 * plan.data);
  FaultSet faults{{}};
  if (state.range(1) != 0) faults.devices.push_back({3, 0.8, 1});
  Simulator simulator(setting, {.time_infeasible = true, .mode = ExecutionMode::flattened});
  std::int64_t events = 0;
  std::int32_t executed = 0;
  for (auto _ : state) {
    Details details;
    benchmark::DoNotOptimize(simulator.run(plan, faults, &details).step_time);
    events += details.events;
    executed = details.executed_ranks;
  }
  state.SetItemsProcessed(events);
  state.SetLabel(std::to_string(executed) + " of " + std::to_string(gpus));
}
BENCHMARK(BM_FlattenedSize)->ArgsProduct({{1024, 4096, 16384}, {0, 1}})->Unit(benchmark::kMillisecond);

BENCHMARK(BM_FlattenedStep)->Arg(8)->Arg(16)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardscape
