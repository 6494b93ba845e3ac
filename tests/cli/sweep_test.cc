// Does a sweep give the same file however it was run, and survive being interrupted and killed?
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"
#include "tests/support/datasets_equal.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

class SweepTest : public ProgramTest {
 protected:
  Running start_and_await_segment(const std::string& output) {
    Running running = start(long_sweep(output, {"--threads", "1"}));
    await_segment(running, output);
    return running;
  }

  void expect_resumes_to_the_whole(const std::string& output) {
    EXPECT_FALSE(fs::exists(work() / output));
    EXPECT_GE(sealed_segments(output), 1);
    const Finished resumed = run(long_sweep(output, {"--resume"}));
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_TRUE(contains(resumed.out, "of them in this run")) << resumed.out;  // it did not start again
    EXPECT_FALSE(fs::exists(work() / (output + ".parts")));
    ASSERT_EQ(run(long_sweep("whole.h5")).code, 0);
    expect_equal("whole.h5", output);
  }

  void expect_equal(const std::string& a, const std::string& b) const {
    std::string difference;
    EXPECT_TRUE(test::datasets_equal(work() / a, work() / b, &difference)) << difference;
  }
};

TEST_F(SweepTest, OneThreadAndTwoGiveEqualDatasets) {
  const std::string study = test::source_dir() + "/sweep/studies/llama3.1-70b-64xa100.yaml";
  ASSERT_EQ(run({"sweep", study, "-o", "one.h5", "--threads", "1"}).code, 0);
  ASSERT_EQ(run({"sweep", study, "-o", "two.h5", "--threads", "2"}).code, 0);
  expect_equal("one.h5", "two.h5");
}

TEST_F(SweepTest, ReferencePathGivesTheSameResults) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "fast.h5"}).code, 0);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "plain.h5", "--reference"}).code, 0);
  const results::ResultReader fast(work() / "fast.h5"), plain(work() / "plain.h5");
  EXPECT_EQ(fast.read("reason"), plain.read("reason"));
  const auto fast_time = fast.read("step_time_s"), plain_time = plain.read("step_time_s");
  ASSERT_EQ(fast_time.size(), plain_time.size());
  for (std::size_t row = 0; row < fast_time.size(); ++row) {
    ASSERT_EQ(std::isnan(fast_time[row]), std::isnan(plain_time[row]));
    if (std::isnan(fast_time[row])) continue;
    ASSERT_NEAR(fast_time[row], plain_time[row], 1e-9 * plain_time[row]);
  }
}

TEST_F(SweepTest, KilledInTheMiddleResumesToEqualDatasets) {
  Running running = start_and_await_segment("out.h5");
  running.send(SIGKILL);
  ASSERT_EQ(running.wait().signal, SIGKILL);
  expect_resumes_to_the_whole("out.h5");
}

TEST_F(SweepTest, FirstInterruptSealsAndSaysHowToGoOn) {
  Running running = start_and_await_segment("out.h5");
  running.send(SIGINT);
  const Finished finished = running.wait();
  ASSERT_EQ(finished.code, 130) << finished.err;
  EXPECT_TRUE(contains(finished.err, "points are safe")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "--limit 600000 -o out.h5 --progress none --threads 1 --resume\n"))
      << finished.err;
  // What was in flight is kept: rows beyond the segment that was sealed before the signal.
  EXPECT_GE(sealed_segments("out.h5"), 1);
  expect_resumes_to_the_whole("out.h5");
}

TEST_F(SweepTest, SecondSignalLeavesAtOnceAndCanBeResumed) {
  Running running = start_and_await_segment("out.h5");
  running.send(SIGTERM);
  running.send(SIGINT);
  const Finished finished = running.wait();
  ASSERT_EQ(finished.code, 130);
  EXPECT_TRUE(contains(finished.err, "interrupted: left at once; continue with\n  ")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "-o out.h5 --progress none --threads 1 --resume\n")) << finished.err;
  expect_resumes_to_the_whole("out.h5");
}

TEST_F(SweepTest, RowsThatAreGoneAreNotCalledSafe) {
  Running running = start_and_await_segment("out.h5");
  fs::remove_all(work() / "out.h5.parts");
  const Finished finished = running.wait();
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_TRUE(contains(finished.err, "none of its rows are left; start again with\n  ")) << finished.err;
  EXPECT_FALSE(contains(finished.err, "safe")) << finished.err;
  EXPECT_FALSE(contains(finished.err, "--resume")) << finished.err;
}

TEST_F(SweepTest, UnfinishedSweepCanBeRead) {
  Running running = start_and_await_segment("out.h5");
  running.send(SIGKILL);
  running.wait();
  for (const char* name : {"out.h5", "out.h5.parts"}) {
    const Finished top = run({"top", name, "-n", "3"});
    EXPECT_EQ(top.code, 0) << top.err;
    EXPECT_TRUE(contains(top.out, "so far")) << top.out;
  }
}

TEST_F(SweepTest, JsonProgressIsOneObjectPerLineAndEndsWithDone) {
  write("study.yaml", kSmallStudy);
  const Finished finished = run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  std::istringstream lines(finished.out);
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);) last = nlohmann::json::parse(line);
  const results::ResultReader reader(work() / "out.h5");
  const std::vector<double> status = reader.read("status");
  EXPECT_EQ(last.at("event"), "done");
  EXPECT_EQ(last.at("points"), reader.row_count());
  EXPECT_EQ(last.at("feasible"), std::ranges::count(status, 0.0));
  EXPECT_EQ(last.at("output"), "out.h5");
  const double cpu = last.at("cpu_s"), rate = last.at("points_per_cpu_s");
  EXPECT_GT(last.at("elapsed_s"), 0.0);
  EXPECT_NEAR(rate * cpu, static_cast<double>(reader.row_count()),
              1e-6 * static_cast<double>(reader.row_count()));
}

TEST_F(SweepTest, ShardsAreThePartsOfTheWhole) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "whole.h5"}).code, 0);
  const results::ResultReader whole(work() / "whole.h5");
  std::vector<std::uint64_t> ids;
  std::vector<double> peaks;
  for (const char* part : {"1", "2"}) {
    const std::string name = std::string(part) + ".h5";
    ASSERT_EQ(run({"sweep", "study.yaml", "-o", name, "--shard", std::string(part) + "/2"}).code, 0);
    const results::ResultReader shard(work() / name);
    std::ranges::copy(shard.point_ids(), std::back_inserter(ids));
    std::ranges::copy(shard.read("tensor_parallel"), std::back_inserter(peaks));
  }
  EXPECT_EQ(ids, whole.point_ids());
  EXPECT_EQ(peaks, whole.read("tensor_parallel"));
}

TEST_F(SweepTest, OverridesMayComeBeforeTheStudy) {
  write("study.yaml", kSmallStudy);
  const Finished finished = run({"sweep", "--set", "workload.global_batch=16", "space.microbatch_size=[1]",
                                 "study.yaml", "-o", "out.h5"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const results::ResultReader reader(work() / "out.h5");
  for (const double batch : reader.read("global_batch")) ASSERT_EQ(batch, 16);
  for (const double microbatch : reader.read("microbatch_size")) ASSERT_EQ(microbatch, 1);
}

TEST_F(SweepTest, CheckCountsWhatASweepHoldsAndWritesNothing) {
  write("study.yaml", kSmallStudy);
  const Finished check = run({"check", "study.yaml"});
  ASSERT_EQ(check.code, 0) << check.err;
  EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5"}).code, 0);
  const results::ResultReader reader(work() / "out.h5");
  EXPECT_TRUE(contains(check.out, "verdicts on all " + std::to_string(reader.row_count()) + " points"))
      << check.out;
  const auto feasible = std::ranges::count(reader.read("status"), 0.0);
  std::istringstream lines(check.out);
  std::string word;
  while (lines >> word && word != "ok") {
  }
  std::int64_t counted = 0;
  lines >> counted;
  EXPECT_EQ(counted, feasible) << check.out;
}

}  // namespace
}  // namespace shardscape::cli
