// CPU time of a load that is simulated request by request: 10,000 requests of random lengths on one server, by
// scheduler and clients, with the engine's own costs of iterations; and of a design point with all of its passes.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "engine/simulate.h"
#include "sweep/space/design_space.h"
#include "sweep/study/load_study.h"

namespace shardscape {
namespace {

sweep::Study live_study(const std::string& scheduler, std::int64_t clients) {
  const std::filesystem::path root(SHARDSCAPE_SOURCE_DIR);
  const yaml::Catalog catalog({root});
  sweep::StudyOptions options;
  options.overrides = {
      "workload={phase: inference, prompt_tokens: 1024, output_tokens: 1024, client: {requests: 10000, "
      "length_ratio: 0.8}, concurrency: " +
          std::to_string(clients) + "}",
      "hardware={stack.serving.scheduler: [" + scheduler + "], stack.serving.max_batch: [1024]}",
      "space={tensor_parallel: 8, pipeline_parallel: 1, data_parallel: fill}", "gpus=8"};
  auto study = sweep::load_study(root / "sweep/studies/llama3.1-70b-serving-16xa100.yaml", catalog, options);
  if (!study) throw std::runtime_error("the study does not load");
  return *std::move(study);
}

void BM_TenThousandRequests(benchmark::State& state, const std::string& scheduler) {
  const sweep::Study study = live_study(scheduler, state.range(0));
  const Setting setting = study.setting(0);
  const sweep::DesignSpace space(study.space, study.gpus, Phase::inference, 1);
  const ParallelPlan plan = space.point(0).plan;
  double ttft = 0;
  for (auto _ : state) {
    Simulator simulator(setting);
    const Prediction prediction = simulator.run(plan);
    if (prediction.status != Status::ok) throw std::runtime_error("the plan does not fit");
    ttft = prediction.ttft.value();
    benchmark::DoNotOptimize(ttft);
  }
  state.counters["ttft_s"] = ttft;
}
BENCHMARK_CAPTURE(BM_TenThousandRequests, vllm, std::string("vllm"))
    ->Arg(8)
    ->Arg(64)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TenThousandRequests, sglang, std::string("sglang"))
    ->Arg(8)
    ->Arg(64)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TenThousandRequests, trtllm, std::string("trtllm"))
    ->Arg(8)
    ->Arg(64)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardscape
