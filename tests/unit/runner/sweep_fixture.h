// A hand-made study and evaluators with closed-form answers, so that a sweep's rows can be predicted without
// the engine.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "results_schema/segments/assemble.h"
#include "results_schema/segments/segments.h"
#include "sweep/runner/run_sweep.h"

namespace shardscape::sweep {

/// 64 GPUs, two HBM bandwidths (1 and 2 TB/s) times three global batches: six settings.
inline Study example_study() {
  Study study;
  study.title = "runner test";
  study.gpus = 64;
  DimensionSpec dimension;
  dimension.name = "nvswitch";
  dimension.shape = {64};
  dimension.bandwidth = BytesPerSecond(1e11);
  dimension.latency = Seconds(1e-6);
  study.hardware = {{.path = "device.hbm.bandwidth",
                     .column = "device_hbm_bandwidth_bytes_per_s",
                     .unit = "byte s-1",
                     .long_name = "HBM bandwidth",
                     .labels = {"1 TB/s", "2 TB/s"},
                     .values = {1e12, 2e12},
                     .choices = {}}};
  for (const double bandwidth : study.hardware[0].values) {
    System system;
    system.fabric.name = "one switch";
    system.fabric.dimensions = {dimension};
    system.device.hbm.stacks = 1;
    system.device.hbm.bandwidth_per_stack = BytesPerSecond(bandwidth);
    study.systems.push_back(system);
  }
  for (const std::int64_t batch : {128, 256, 512}) {
    WorkloadSpec workload;
    workload.sequence_length = 4096;
    workload.global_batch = batch;
    study.workloads.push_back(workload);
  }
  study.space[PlanKey::tensor].values = {1, 2, 4, 8};
  study.space[PlanKey::context].values = {1, 2, 4};
  study.space[PlanKey::pipeline].values = {1, 2, 4, 8};
  study.space[PlanKey::zero_stage].values = {0, 1, 2, 3};
  study.space[PlanKey::recompute].values = codes_of({Recompute::none, Recompute::full});
  study.space[PlanKey::microbatch].values = {1, 2, 4};
  study.space[PlanKey::schedule].values = codes_of({ScheduleKind::one_f_one_b, ScheduleKind::interleaved});
  study.space[PlanKey::virtual_stages].values = {2, 4};
  study.objectives = {"step_time_s"};
  study.resolved_yaml = "study: runner test\n";
  return study;
}

/// The closed form: every axis of the plan and of the setting leaves its mark.
inline double expected_step_time(const Setting& setting, const ParallelPlan& plan) {
  const double machine = setting.system.device.hbm.bandwidth_per_stack.value() / 1e12;
  return (plan.tensor + 0.1 * plan.context + 0.01 * plan.pipeline + 0.001 * plan.zero_stage +
          17.0 * plan.microbatch + static_cast<double>(plan.recompute) + 3.0 * plan.virtual_stages) *
         static_cast<double>(setting.workload.global_batch) / machine;
}

/// Plans with pp = 8 need too much memory; everything else is timed.
inline Prediction expected_prediction(const Setting& setting, const ParallelPlan& plan) {
  Prediction prediction;
  prediction.memory_peak = Bytes(1e9 * plan.pipeline);
  if (plan.pipeline == 8) {
    prediction.status = Status::memory;
    prediction.reason = Reason::memory_capacity;
    return prediction;
  }
  prediction.step_time = Seconds(expected_step_time(setting, plan));
  return prediction;
}

/// A dead link cuts plans with mbs = 4; a sick one costs its number of percent times what it lost.
inline Prediction expected_faulty_prediction(const Setting& setting, const ParallelPlan& plan,
                                             const FaultSet& faults) {
  Prediction prediction = expected_prediction(setting, plan);
  double slowdown = 0;
  for (const LinkFault& fault : faults.links) {
    if (fault.removed && plan.microbatch == 4) prediction.status = Status::unreachable;
    slowdown += fault.removed ? 1 : 0.01 * fault.link * (1 - fault.derate) / plan.tensor;
  }
  prediction.step_time = (1 + slowdown) * prediction.step_time;
  return prediction;
}

/// Counts its calls, and now and then takes its time, so that blocks finish out of order.
class FakeEvaluator final : public Evaluator {
 public:
  FakeEvaluator(const Setting& setting, std::atomic<std::uint64_t>& calls)
      : setting_(&setting), calls_(&calls) {}
  Prediction evaluate(const ParallelPlan& plan) override {
    if (calls_->fetch_add(1) % 97 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    plan_ = plan;
    return expected_prediction(*setting_, plan);
  }
  Prediction evaluate_again(const FaultSet& faults) override {
    return expected_faulty_prediction(*setting_, plan_, faults);
  }

 private:
  const Setting* setting_;
  std::atomic<std::uint64_t>* calls_;
  ParallelPlan plan_;
};

inline EvaluatorFactory fake_factory(std::atomic<std::uint64_t>& calls) {
  return [&calls](const Setting& setting, PlacementChoice) {
    return std::make_unique<FakeEvaluator>(setting, calls);
  };
}

/// A folder of its own, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardscape-runner-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline results::RunInfo example_run() {
  results::RunInfo run;
  run.created_utc = "2024-01-01T00:00:00Z";
  run.software_version = "test";
  return run;
}

}  // namespace shardscape::sweep
