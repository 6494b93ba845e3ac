// Events per second of flattened mode: operators, calls entered, messages drained and received.
#include <benchmark/benchmark.h>

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
BENCHMARK(BM_FlattenedStep)->Arg(8)->Arg(16)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardscape
