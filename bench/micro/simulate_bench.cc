// Design points per second through Simulator: the headline figure of the engine.
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/micro/bench_settings.h"
#include "engine/simulate.h"
#include "sweep/space/design_space.h"

namespace shardscape {
namespace {

/// The plans of GPT-3 175B on 1,024 GPUs with all training axes open.
sweep::SpaceSpec open_space() {
  sweep::SpaceSpec spec;
  spec[PlanKey::tensor].values = {1, 2, 4, 8, 16};
  spec[PlanKey::context].values = {1, 2, 4};
  spec[PlanKey::pipeline].values = {1, 2, 4, 8, 16, 32, 64};
  spec[PlanKey::sequence_parallel].values = {false, true};
  spec[PlanKey::zero_stage].values = {0, 1, 2, 3};
  spec[PlanKey::recompute].values = codes_of({Recompute::none, Recompute::selective, Recompute::full});
  spec[PlanKey::microbatch].values = {1, 2, 4};
  spec[PlanKey::schedule].values = codes_of({ScheduleKind::one_f_one_b, ScheduleKind::interleaved});
  spec[PlanKey::virtual_stages].values = {2, 3};
  return spec;
}

/// Runs every plan of the space in turn; counts only those that are simulated in full when `feasible_only`.
void sweep_points(benchmark::State& state, SimulateOptions options, std::uint64_t stride) {
  const Setting setting = bench::training_setting("gpt-175b", "dgx-a100", "megatron-lm", 1024, 2048, 1536);
  const sweep::DesignSpace space(open_space(), 1024, Phase::training, 1);
  std::int64_t points = 0, feasible = 0;
  for (auto _ : state) {
    Simulator simulator(setting, options);
    for (std::uint64_t id = 0; id < space.size(); id += stride) {
      const Prediction prediction = simulator.run(space.point(id).plan);
      feasible += prediction.status == Status::ok ? 1 : 0;
      ++points;
      benchmark::DoNotOptimize(prediction.step_time);
    }
  }
  state.SetItemsProcessed(points);
  state.counters["feasible_share"] = static_cast<double>(feasible) / static_cast<double>(points);
  state.counters["feasible_per_second"] =
      benchmark::Counter(static_cast<double>(feasible), benchmark::Counter::kIsRate);
}

void BM_SimulateSpace(benchmark::State& state) { sweep_points(state, {}, 1); }
BENCHMARK(BM_SimulateSpace)->Unit(benchmark::kMillisecond);

void BM_SimulateSpaceReference(benchmark::State& state) { sweep_points(state, {true, false}, 97); }
BENCHMARK(BM_SimulateSpaceReference)->Unit(benchmark::kMillisecond);

/// The memory verdict alone: every point of the space that does not fit, one after the other, from the plan
/// to the rejection. GPT-1T, so that most of the space is such.
void BM_MemoryVerdict(benchmark::State& state) {
  const Setting setting = bench::training_setting("gpt-1t", "dgx-a100", "megatron-lm", 1024, 2048, 1536);
  const sweep::DesignSpace space(open_space(), 1024, Phase::training, 1);
  Simulator simulator(setting);
  std::vector<ParallelPlan> plans;
  double stages = 0;
  for (std::uint64_t id = 0; id < space.size(); ++id) {
    const ParallelPlan plan = space.point(id).plan;
    if (simulator.run(plan).status != Status::memory) continue;
    plans.push_back(plan);
    stages += plan.pipeline;
  }
  for (auto _ : state) {
    for (const ParallelPlan& plan : plans) benchmark::DoNotOptimize(simulator.run(plan).memory_peak);
  }
  const auto count = static_cast<std::int64_t>(plans.size());
  state.SetItemsProcessed(state.iterations() * count);
  state.counters["points"] = static_cast<double>(count);
  state.counters["stages_per_point"] = stages / static_cast<double>(count);
}
BENCHMARK(BM_MemoryVerdict)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardscape
