// Are the rows of a sweep those of the study, however many threads, interruptions and parts it took?
#include "sweep/runner/run_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "results_schema/reading/reader.h"
#include "tests/support/datasets_equal.h"
#include "tests/unit/runner/sweep_fixture.h"

namespace shardscape::sweep {
namespace {

using results::SegmentStore;

struct FinishedRun {
  SweepOutcome outcome;
  std::uint64_t calls = 0;
};

/// Sweeps into `output`; seals every few blocks so that there are many segments.
FinishedRun sweep_into(const SweepJob& job, const std::filesystem::path& output, int threads) {
  std::atomic<std::uint64_t> calls = 0;
  SegmentStore store = SegmentStore::create(results::parts_folder(output), job.manifest(example_run()));
  SweepOptions options;
  options.threads = threads;
  options.evaluator = fake_factory(calls);
  options.seal.rows = 300;
  FinishedRun run{run_sweep(job, store, options), calls};
  store.scan();
  if (run.outcome.complete) results::assemble(std::move(store), output, example_run());
  return run;
}

TEST(RunSweep, EveryRowIsThePointOfItsId) {
  const Study study = example_study();
  const SweepJob job(study);
  const ScratchFolder folder;
  const FinishedRun run = sweep_into(job, folder / "a.h5", 2);
  ASSERT_TRUE(run.outcome.complete);
  EXPECT_EQ(run.calls, job.space().size());

  const results::ResultReader reader(folder / "a.h5");
  ASSERT_EQ(reader.row_count(), job.space().size());
  const auto ids = reader.point_ids();
  const auto tensor = reader.read("tensor_parallel"), microbatch = reader.read("microbatch_size");
  const auto batch = reader.read("global_batch"), status = reader.read("status");
  const auto bandwidth = reader.read("device_hbm_bandwidth_bytes_per_s"), time = reader.read("step_time_s");
  for (std::uint64_t row = 0; row < ids.size(); ++row) {
    ASSERT_EQ(ids[row], row);
    const PointIndex point = job.space().point(row);
    const Setting setting = study.setting(point.setting);
    ASSERT_EQ(tensor[row], point.plan.tensor);
    ASSERT_EQ(microbatch[row], point.plan.microbatch);
    ASSERT_EQ(batch[row], static_cast<double>(setting.workload.global_batch));
    ASSERT_EQ(bandwidth[row], setting.system.device.hbm.bandwidth_per_stack.value());
    const bool fits = point.plan.pipeline < 8;
    ASSERT_EQ(status[row], static_cast<double>(fits ? Status::ok : Status::memory));
    if (fits) {
      ASSERT_EQ(time[row], expected_step_time(setting, point.plan));
    } else {
      ASSERT_TRUE(std::isnan(time[row]));
    }
  }
}

TEST(RunSweep, DataDoNotDependOnThreads) {
  const Study study = example_study();
  const SweepJob job(study);
  const ScratchFolder folder;
  sweep_into(job, folder / "one.h5", 1);
  for (const int threads : {2, 3, 8}) {
    const std::string name = std::to_string(threads) + ".h5";
    sweep_into(job, folder / name, threads);
    std::string difference;
    EXPECT_TRUE(test::datasets_equal(folder / "one.h5", folder / name, &difference)) << difference;
  }
}

TEST(RunSweep, TalliesAndBestAreThoseOfABruteForceCount) {
  const Study study = example_study();
  const SweepJob job(study);
  Tally expected;
  for (std::uint64_t id = 0; id < job.space().size(); ++id) {
    const PointIndex point = job.space().point(id);
    const Prediction prediction = expected_prediction(study.setting(point.setting), point.plan);
    ++expected.by_status[static_cast<std::size_t>(prediction.status)];
    ++expected.by_reason[static_cast<std::size_t>(prediction.reason)];
    const double time = prediction.step_time.value();
    const bool better =
        prediction.status == Status::ok && (!expected.best || time < expected.best->objective);
    if (better) expected.best = BestPoint{time, id};  // ties stay with the smaller id
  }
  const ScratchFolder folder;
  const SweepProgress progress = sweep_into(job, folder / "a.h5", 3).outcome.progress;
  EXPECT_EQ(progress.tally.by_status, expected.by_status);
  EXPECT_EQ(progress.tally.by_reason, expected.by_reason);
  EXPECT_EQ(progress.tally.best->point_id, expected.best->point_id);
  EXPECT_EQ(progress.tally.best->objective, expected.best->objective);
  EXPECT_EQ(progress.rows_done(), job.space().size());
}

TEST(RunSweep, ConstraintsRejectBeforeTheEngineIsAsked) {
  Study study = example_study();
  study.space.constraints = {"tp * cp <= 8", "mbs < 4 or global_batch > 128"};
  const SweepJob job(study);
  std::uint64_t admitted = 0;
  for (std::uint64_t id = 0; id < job.space().size(); ++id) {
    const PointIndex point = job.space().point(id);
    const bool small = point.plan.tensor * point.plan.context <= 8;
    const bool batch = point.plan.microbatch < 4 || study.setting(point.setting).workload.global_batch > 128;
    admitted += small && batch ? 1 : 0;
  }
  ASSERT_LT(admitted, job.space().size());
  const ScratchFolder folder;
  const FinishedRun run = sweep_into(job, folder / "a.h5", 2);
  EXPECT_EQ(run.calls, admitted);
  EXPECT_EQ(run.outcome.progress.tally.count(Status::constraint), job.space().size() - admitted);
  EXPECT_EQ(run.outcome.progress.tally.count(Reason::constraint), job.space().size() - admitted);
}

void expect_resumed_to_the_same_data(const SweepJob& job) {
  const ScratchFolder folder;
  sweep_into(job, folder / "whole.h5", 2);

  const auto output = folder / "stopped.h5";
  std::uint64_t sealed = 0;
  int runs = 0;
  for (bool complete = false; !complete; ++runs) {  // every run is stopped after three blocks
    ASSERT_LT(runs, 1000);
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<bool> stop = false;
    int blocks = 0;
    SegmentStore store = SegmentStore::resume(results::parts_folder(output), job.manifest(example_run()));
    EXPECT_EQ(store.sealed_rows(), sealed);
    SweepOptions options;
    options.threads = 2;
    options.evaluator = fake_factory(calls);
    options.stop = &stop;
    options.observer = [&](const SweepProgress&) { stop = ++blocks >= 3; };
    const SweepOutcome outcome = run_sweep(job, store, options);
    store.scan();
    EXPECT_EQ(store.sealed_rows(), outcome.progress.rows_done());
    EXPECT_EQ(outcome.progress.rows_before, sealed);
    EXPECT_EQ(calls, outcome.progress.rows_evaluated);
    EXPECT_GE(blocks, 1);
    sealed = store.sealed_rows();
    complete = outcome.complete;
    if (complete) results::assemble(std::move(store), output, example_run());
  }
  EXPECT_GT(runs, 2);
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(folder / "whole.h5", output, &difference)) << difference;
}

TEST(RunSweep, StoppedSweepIsResumedToTheSameData) {
  const Study study = example_study();
  const SweepJob job(study);
  expect_resumed_to_the_same_data(job);
  // A sample is as good a sweep: a point is a function of its row.
  expect_resumed_to_the_same_data(SweepJob(study, std::nullopt, {}, Sample{job.space().size() - 7, 3}));
}

// A simulation of a load asks whether to go on; what it says after a stop is no result.
TEST(RunSweep, ASimulatedLoadIsGivenUpWithinAndResumedToTheSameData) {
  Study study = example_study();
  for (WorkloadSpec& workload : study.workloads) workload.load.emplace().requests = {2000, false};
  const SweepJob job(study);
  const ScratchFolder folder;
  sweep_into(job, folder / "whole.h5", 2);
  class Long final : public Evaluator {
   public:
    Long(const Setting& setting, std::atomic<std::uint64_t>& calls, std::atomic<bool>& stop)
        : of_(setting, calls), calls_(&calls), stop_(&stop) {}
    void watch(StepWatch watch) override { watch_ = std::move(watch); }
    Prediction evaluate(const ParallelPlan& plan) override {
      if (*calls_ == 1000) *stop_ = true;
      const Prediction whole = of_.evaluate(plan);
      return watch_(Seconds(0)) ? whole : Prediction();
    }
    Prediction evaluate_again(const FaultSet& faults) override { return of_.evaluate_again(faults); }

   private:
    FakeEvaluator of_;
    std::atomic<std::uint64_t>* calls_;
    std::atomic<bool>* stop_;
    StepWatch watch_ = [](Seconds) { return true; };
  };
  std::atomic<std::uint64_t> calls = 0;
  const auto output = folder / "stopped.h5";
  for (bool complete = false; !complete;) {
    std::atomic<bool> stop = false;
    SegmentStore store = SegmentStore::resume(results::parts_folder(output), job.manifest(example_run()));
    SweepOptions options;
    options.stop = &stop;
    options.evaluator = [&](const Setting& setting, PlacementChoice) {
      return std::make_unique<Long>(setting, calls, stop);
    };
    complete = run_sweep(job, store, options).complete;
    store.scan();
    if (complete) results::assemble(std::move(store), output, example_run());
    EXPECT_TRUE(complete || calls <= 1002U) << "it ends within a block of " << job.layout().rows_per_block;
  }
  EXPECT_GT(calls, job.layout().rows()) << "some rows were computed twice";
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(folder / "whole.h5", output, &difference)) << difference;
}

TEST(RunSweep, FailureOfAWorkerReachesTheCallerAndLeavesWhatIsSealed) {
  const Study study = example_study();
  const SweepJob job(study);
  const ScratchFolder folder;
  class Failing final : public Evaluator {
   public:
    Prediction evaluate(const ParallelPlan& plan) override {
      if (plan.tensor == 8) throw std::runtime_error("no more");
      return {};
    }
    Prediction evaluate_again(const FaultSet&) override { return {}; }
  };
  const auto parts = results::parts_folder(folder / "a.h5");
  {
    const SegmentStore store = SegmentStore::create(parts, job.manifest(example_run()));
    SweepOptions options;
    options.threads = 2;
    options.evaluator = [](const Setting&, PlacementChoice) { return std::make_unique<Failing>(); };
    options.seal.rows = 1;
    EXPECT_THROW(run_sweep(job, store, options), std::runtime_error);
  }
  const SegmentStore store = SegmentStore::open(parts);
  EXPECT_LT(store.sealed_rows(), job.space().size());
}

TEST(SweepJob, BlocksAreAFunctionOfTheSpace) {
  EXPECT_EQ(rows_per_block(1), 256U);
  EXPECT_EQ(rows_per_block(256 * 128), 256U);
  EXPECT_EQ(rows_per_block(257 * 128), 512U);
  EXPECT_EQ(rows_per_block(1, 16), 16U);  // 256 / 16
  EXPECT_EQ(rows_per_block(1, 64), 8U);   // 4 are too few
  EXPECT_EQ(rows_per_block(64 * 128, 64), 64U);
  EXPECT_EQ(rows_per_block(1'000'000), 4096U);  // 7812 is too many
  EXPECT_EQ(rows_per_block(400'000), 4096U);    // 3125 rounded up
  EXPECT_EQ(rows_per_block(~std::uint64_t{0}), 4096U);
  EXPECT_EQ(rows_per_block(5103, 301), 64U);        // 32,768 / 301 is 108
  EXPECT_EQ(rows_per_block(1'000'000, 17), 1024U);  // 1,927
  EXPECT_EQ(rows_per_block(1'000'000, 3073), 8U);   // 10
  EXPECT_EQ(rows_per_block(1'000'000, 1'000'000), 8U);
}

TEST(SweepJob, BlocksOfPointsThatTakeLongAreShort) {
  Study study = example_study();
  const std::uint64_t points = SweepJob(study).space().size();
  ASSERT_TRUE(points > 32 * 128 && points <= 256 * 128) << points;
  EXPECT_EQ(SweepJob(study).layout().rows_per_block, 256U);
  study.mode = ExecutionMode::flattened;
  EXPECT_EQ(SweepJob(study).layout().rows_per_block, 32U);  // 32,768 / 1,000
  study.mode = ExecutionMode::hierarchical;
  for (WorkloadSpec& workload : study.workloads) workload.phase = Phase::inference;
  EXPECT_EQ(SweepJob(study).layout().rows_per_block, 16U);  // 256 / 16, where 1/128 of the space is less
  study.space.prefill_gpus = {0, 16};
  EXPECT_EQ(SweepJob(study).layout().rows_per_block, 8U);
}

TEST(SweepJob, ManyRequestsMakeShortBlocks) {
  Study study = example_study();
  for (WorkloadSpec& workload : study.workloads) {
    workload.phase = Phase::inference;
    workload.load.emplace().requests = {100, false};
  }
  EXPECT_EQ(SweepJob(study).layout().rows_per_block, 8U);
  for (WorkloadSpec& workload : study.workloads) workload.load->requests.number = 1'000'000;
  EXPECT_EQ(SweepJob(study).layout().rows_per_block, 1U);
  // Requests that are all alike take less.
  for (WorkloadSpec& workload : study.workloads) workload.load->requests.number = 10'000;
  EXPECT_EQ(SweepJob(study).layout().rows_per_block, 8U);
  for (WorkloadSpec& workload : study.workloads) workload.load->prompt = Lengths::uniform(100, 0.5);
  EXPECT_EQ(SweepJob(study).layout().rows_per_block, 1U);
}

TEST(SweepJob, LimitKeepsTheFirstPointsAndTheBlocks) {
  const Study study = example_study();
  const SweepJob all(study), some(study, 100);
  EXPECT_EQ(some.layout().rows(), 100U);
  EXPECT_EQ(some.layout().rows_per_block, all.layout().rows_per_block);
  EXPECT_EQ(SweepJob(study, all.space().size() + 5).layout(), all.layout());
  const ScratchFolder folder;
  EXPECT_EQ(sweep_into(some, folder / "a.h5", 2).calls, 100U);
  EXPECT_EQ(results::ResultReader(folder / "a.h5").point_ids().back(), 99U);
}

TEST(SweepJob, SampleIsOneOfEachPartHoweverItIsRun) {
  const Study study = example_study();
  const std::uint64_t size = SweepJob(study).space().size();
  const SweepJob job(study, std::nullopt, {}, Sample{150, 7});
  EXPECT_EQ(job.layout().selection, (results::PointSelection{results::SelectionKind::sample, size, 7}));
  const ScratchFolder folder;
  EXPECT_EQ(sweep_into(job, folder / "one.h5", 1).calls, 150U);
  sweep_into(job, folder / "two.h5", 2);
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(folder / "one.h5", folder / "two.h5", &difference)) << difference;
  const results::ResultReader reader(folder / "one.h5");
  const auto ids = reader.point_ids();
  const auto tensor = reader.read("tensor_parallel");
  for (std::uint64_t row = 0; row < 150; ++row) {
    // Parts of size / 150 ids, the first size % 150 of them one longer.
    const std::uint64_t begin = size / 150 * row + std::min(row, size % 150);
    const std::uint64_t end = size / 150 * (row + 1) + std::min(row + 1, size % 150);
    EXPECT_TRUE(ids[row] >= begin && ids[row] < end) << row;
    EXPECT_EQ(tensor[row], job.space().point(ids[row]).plan.tensor);
  }
  const SweepJob other(study, std::nullopt, {}, Sample{150, 8});
  sweep_into(other, folder / "other.h5", 1);
  EXPECT_NE(results::ResultReader(folder / "other.h5").point_ids(), ids);
  // A sample of more than there are is all of it.
  EXPECT_EQ(SweepJob(study, std::nullopt, {}, Sample{size, 7}).layout(), SweepJob(study).layout());
}

TEST(SweepJob, ShardsPartitionTheBlocks) {
  const Study study = example_study();
  const SweepJob all(study);
  for (const std::uint64_t count : {1U, 2U, 3U, 7U, 1000U}) {
    std::uint64_t next = 0, rows = 0, largest = 0, smallest = ~std::uint64_t{0};
    for (std::uint64_t index = 1; index <= count; ++index) {
      const SweepJob job(study, std::nullopt, {index, count});
      EXPECT_EQ(job.layout().blocks.first, next);
      next = job.layout().blocks.end();
      rows += job.layout().rows();
      largest = std::max(largest, job.layout().blocks.count);
      smallest = std::min(smallest, job.layout().blocks.count);
    }
    EXPECT_EQ(next, all.layout().blocks.count);
    EXPECT_EQ(rows, all.space().size());
    EXPECT_LE(largest - smallest, 1U);
  }
}

/// Fifty samples of a soft or a hard link on a ring, so that the fake's closed form has something to say.
Study faulty_study() {
  Study study = example_study();
  for (System& system : study.systems) system.fabric.dimensions.front().kind = DimensionKind::ring;
  FaultStudy faults;
  faults.kinds = {{FaultKind::soft_link, 3}, {FaultKind::hard_link, 1}};
  faults.samples = 50;
  faults.derate.kind = DistributionKind::uniform;
  faults.derate.min = 0.2;
  faults.derate.max = 0.9;
  faults.seed = 11;
  study.faults = faults;
  study.objectives = {"expected_step_time_s"};
  return study;
}

// Points that are known keep what is known where sampling is stopped, and have all of their samples or none.
TEST(RunSweep, SamplingThatIsStoppedLeavesWholePoints) {
  const Study study = faulty_study();
  const SweepJob job(study, 200);
  std::vector<std::uint64_t> ids;
  std::vector<Prediction> known;
  std::uint64_t feasible = 0;
  for (std::uint64_t id = 0; id < 200; ++id) {
    const PointIndex point = job.space().point(id);
    ids.push_back(id);
    known.push_back(expected_prediction(study.setting(point.setting), point.plan));
    feasible += known.back().status == Status::ok ? 1 : 0;
  }
  for (const int asks : {0, 1, 40, 1'000'000}) {
    const ScratchFolder folder;
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<int> asked = 0;
    SweepOptions options;
    options.evaluator = fake_factory(calls);
    options.known = {ids, known};
    options.go_on_sampling = [&] { return asked++ < asks; };
    auto store = SegmentStore::create(results::parts_folder(folder / "a.h5"), job.manifest(example_run()));
    const SweepOutcome outcome = run_sweep(job, store, options);
    results::assemble(std::move(store), results::OutputPath(folder / "a.h5", false), example_run());
    const results::ResultReader reader(folder / "a.h5");
    const auto samples = reader.read("fault_samples"), time = reader.read("step_time_s");
    std::uint64_t sampled = 0;
    for (std::uint64_t id = 0; id < 200; ++id) {
      EXPECT_TRUE(samples[id] == 0 || samples[id] == 50) << id;
      sampled += samples[id] > 0 ? 1 : 0;
      if (known[id].status == Status::ok) {
        EXPECT_EQ(time[id], known[id].step_time.value());
      }
    }
    EXPECT_EQ(sampled + outcome.progress.tally.unsampled, feasible);
    EXPECT_EQ(calls, asks == 0 ? 0 : asks == 1 ? 1 : asks == 40 ? sampled + 1 : feasible);
    EXPECT_EQ(reader.samples().point_ids().size(), 50 * sampled);
  }
}

TEST(RunSweep, FaultSamplesAreThoseOfTheDraws) {
  const Study study = faulty_study();
  const SweepJob job(study, 200);
  const ScratchFolder folder;
  sweep_into(job, folder / "a.h5", 2);
  const results::ResultReader reader(folder / "a.h5");
  const auto status = reader.read("status"), mean = reader.read("slowdown_mean");
  const auto samples = reader.read("fault_samples"), expected = reader.read("expected_step_time_s");
  const auto points = reader.samples().point_ids();
  const auto sample = reader.samples().read("sample"), link = reader.samples().read("link_id");
  const auto sample_status = reader.samples().read("status"), derate = reader.samples().read("derate");
  const auto time = reader.samples().read("step_time_s"), slowdown = reader.samples().read("slowdown");
  const FaultSampler sampler(*study.faults, network::Fabric(study.systems.front().fabric));
  std::size_t row = 0;
  std::uint64_t cut = 0;
  for (std::uint64_t id = 0; id < 200; ++id) {
    const PointIndex point = job.space().point(id);
    const Setting setting = study.setting(point.setting);
    if (static_cast<Status>(status[id]) != Status::ok) {
      EXPECT_EQ(samples[id], 0);
      EXPECT_TRUE(std::isnan(mean[id]));
      continue;
    }
    double sum = 0;
    int reached = 0;
    for (std::uint64_t s = 0; s < 50; ++s, ++row) {
      const FaultDraw draw = sampler.draw(s);
      const Prediction sick = expected_faulty_prediction(setting, point.plan, draw.set);
      ASSERT_EQ(points[row], id);
      ASSERT_EQ(sample[row], static_cast<double>(s));
      ASSERT_EQ(link[row], draw.faults.front().link);
      ASSERT_EQ(derate[row], draw.faults.front().derate);
      ASSERT_EQ(static_cast<Status>(sample_status[row]), sick.status);
      if (sick.status == Status::unreachable) {
        ++cut;
        ASSERT_TRUE(std::isnan(time[row]) && std::isnan(slowdown[row]));
        continue;
      }
      ASSERT_EQ(time[row], sick.step_time.value());
      ASSERT_EQ(slowdown[row], time[row] / expected_step_time(setting, point.plan) - 1);
      sum += slowdown[row];
      ++reached;
    }
    EXPECT_NEAR(mean[id], sum / reached, 1e-12);
    EXPECT_NEAR(expected[id], expected_step_time(setting, point.plan) * (1 + sum / reached), 1e-9);
  }
  EXPECT_EQ(row, reader.samples().row_count());
  EXPECT_GT(cut, 0U);
}

TEST(RunSweep, FaultDataDoNotDependOnThreadsNorOnInterruptions) {
  const Study study = faulty_study();
  const SweepJob job(study, 600);
  const ScratchFolder folder;
  sweep_into(job, folder / "one.h5", 1);
  sweep_into(job, folder / "two.h5", 2);
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(folder / "one.h5", folder / "two.h5", &difference)) << difference;

  const auto output = folder / "stopped.h5";
  for (bool complete = false; !complete;) {  // every run is stopped after three blocks
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<bool> stop = false;
    int blocks = 0;
    SegmentStore store = SegmentStore::resume(results::parts_folder(output), job.manifest(example_run()));
    SweepOptions options;
    options.threads = 2;
    options.evaluator = fake_factory(calls);
    options.stop = &stop;
    options.observer = [&](const SweepProgress&) { stop = ++blocks >= 3; };
    complete = run_sweep(job, store, options).complete;
    store.scan();
    const results::ResultReader running(output);
    const auto ids = running.samples().point_ids();
    EXPECT_EQ(ids.size(), running.samples().row_count());
    EXPECT_TRUE(std::ranges::is_sorted(ids));
    if (complete) results::assemble(std::move(store), output, example_run());
  }
  EXPECT_TRUE(test::datasets_equal(folder / "one.h5", output, &difference)) << difference;
}

TEST(RunSweep, ATargetStopsSamplingPointByPoint) {
  Study study = faulty_study();
  study.faults->kinds = {{FaultKind::soft_link}};
  study.faults->samples = 2000;
  study.faults->target_ci = 0.05;
  const SweepJob job(study, 100);
  const ScratchFolder folder;
  sweep_into(job, folder / "a.h5", 2);
  const results::ResultReader reader(folder / "a.h5");
  const auto samples = reader.read("fault_samples"), error = reader.read("slowdown_standard_error");
  bool early = false;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i] == 0 || samples[i] == 2000) continue;
    early = true;
    EXPECT_GE(samples[i], kLeastSamplesOfTarget);
    EXPECT_LE(2 * 1.959963984540054 * error[i], 0.05 * (1 + 1e-9));
  }
  EXPECT_TRUE(early);
}

}  // namespace
}  // namespace shardscape::sweep
