// Design points of servers per second, by kind: replicas that do all of a request, and two pools for one part each.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/simulate.h"
#include "sweep/space/design_space.h"
#include "sweep/study/load_study.h"

namespace shardscape {
namespace {

/// Llama 3.1 70B on DGX A100s under the loads of the published study, and more.
sweep::Study serving_study(const std::vector<std::string>& overrides) {
  const std::filesystem::path root(SHARDSCAPE_SOURCE_DIR);
  const yaml::Catalog catalog({root});
  sweep::StudyOptions options;
  options.overrides = overrides;
  auto study = sweep::load_study(root / "sweep/studies/llama3.1-70b-serving-16xa100.yaml", catalog, options);
  if (!study) throw std::runtime_error("the study does not load");
  return *std::move(study);
}

/// Every point of the study, setting by setting, as a sweep evaluates them.
void serve_points(benchmark::State& state, const std::vector<std::string>& overrides) {
  const sweep::Study study = serving_study(overrides);
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < study.setting_count(); ++i) settings.push_back(study.setting(i));
  const sweep::DesignSpace space(study.space, study.gpus, Phase::inference, study.setting_count());
  std::int64_t points = 0, feasible = 0;
  for (auto _ : state) {
    std::vector<Simulator> simulators;
    for (const Setting& setting : settings) simulators.emplace_back(setting);
    for (std::uint64_t id = 0; id < space.size(); ++id) {
      const auto point = space.point(id);
      const Prediction prediction = simulators[point.setting].run(point.plan);
      feasible += prediction.status == Status::ok ? 1 : 0;
      ++points;
      benchmark::DoNotOptimize(prediction.e2e);
    }
  }
  state.SetItemsProcessed(points);
  state.counters["feasible_share"] = static_cast<double>(feasible) / static_cast<double>(points);
}

const std::vector<std::string>& colocated_points() {
  static const std::vector<std::string> overrides = {
      "space={tensor_parallel: [2, 4, 8], pipeline_parallel: [1, 2]}", "gpus=64",
      "workload.concurrency=[128, 512]"};
  return overrides;
}
const std::vector<std::string>& split_points() {
  static const std::vector<std::string> overrides = {"space.prefill_gpus=[16, 32, 48]", "gpus=64",
                                                     "workload.concurrency=[128, 512]"};
  return overrides;
}

void BM_ServeColocated(benchmark::State& state) { serve_points(state, colocated_points()); }
BENCHMARK(BM_ServeColocated)->Unit(benchmark::kMillisecond);

void BM_ServeSplit(benchmark::State& state) { serve_points(state, split_points()); }
BENCHMARK(BM_ServeSplit)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardscape
