// Are promises and constraints on results read with their units, and refused where they stand?
#include "sweep/study/limits_parser.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

using results::Limit;
using results::Relation;

std::string loaded(const std::string& rest) {
  return std::string(kModel) + kSystem +
         "workload: {phase: inference, prompt_tokens: 100, output_tokens: 20, request_rate: 3 /s}\n" + rest;
}

TEST(Promises, AreBoundsOfLatencies) {
  const Study study =
      good(loaded("promises: {ttft_p95: 2 s, tpot_mean: 40 ms, e2e_p99: 30 s, ttft_p50: 0.5 s}\n"));
  const std::vector<Limit> expected = {{"ttft_p95_s", Relation::at_most, 2, true},
                                       {"tpot_s", Relation::at_most, 0.04, true},
                                       {"e2e_p99_s", Relation::at_most, 30, true},
                                       {"ttft_p50_s", Relation::at_most, 0.5, true}};
  EXPECT_EQ(study.limits, expected);
  // A request is held to the largest bound, since half of them may take longer than the median's.
  EXPECT_EQ(study.workloads[0].load->promised, (LatencyBounds{2, 0.04, 30}));
  EXPECT_EQ(good(loaded("promises: {itl_p99: 50 ms}\n")).workloads[0].load->promised,
            (LatencyBounds{std::numeric_limits<double>::infinity(), 0.05,
                           std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(good(study.resolved_yaml).limits, expected);
}

TEST(Promises, ThatCannotBeReadAreRefused) {
  const auto problem = [](const std::string& promises) {
    return bad(loaded("promises: " + promises + "\n"));
  };
  EXPECT_TRUE(
      reports(problem("{ttft_p59: 2 s}"), "s.yaml:31:22: promises.ttft_p59", "did you mean \"ttft_p50\""));
  EXPECT_TRUE(reports(problem("{ttft_p95: 2}"), "s.yaml:31:22: promises.ttft_p95", "bare number"));
  EXPECT_TRUE(reports(problem("{ttft_p95: 2 GB}"), "s.yaml:31:22: promises.ttft_p95", "a time"));
  EXPECT_TRUE(reports(problem("{ttft_p95: 0 s}"), "s.yaml:31:22: promises.ttft_p95", "longer than 0 s"));
  EXPECT_TRUE(reports(problem("{ttft: 1 s, ttft_mean: 2 s}"), "s.yaml:31:34: promises.ttft_mean", "twice"));
  EXPECT_TRUE(reports(problem("{}"), "s.yaml:31:11: promises", "promises nothing"));
  EXPECT_TRUE(
      reports(bad(inference("promises: {ttft_p95: 2 s}\n")), "s.yaml:31:11: promises", "request by request"));
  EXPECT_TRUE(
      reports(bad(training("promises: {ttft_p95: 2 s}\n")), "s.yaml:31:11: promises", "request by request"));
}

TEST(Constraints, MayBeOnResults) {
  const Study study = good(training(
      "constraints: ['memory <= 70 GB', step_time < 70 s, 'step_time_s >= 0.5', mfu > 45 %, 'tp * pp <= 8', "
      "'memory_peak_bytes<=7e10']\n"));
  const std::vector<Limit> expected = {{"memory_peak_bytes", Relation::at_most, 70e9},
                                       {"step_time_s", Relation::below, 70},
                                       {"step_time_s", Relation::at_least, 0.5},
                                       {"mfu", Relation::above, 0.45}};
  EXPECT_EQ(study.limits, expected) << "the last says the first again";
  EXPECT_EQ(study.space.constraints, std::vector<std::string>{"tp * pp <= 8"});
  const Study again = good(study.resolved_yaml);
  EXPECT_EQ(again.limits, expected);
  EXPECT_EQ(again.space.constraints, study.space.constraints);
  EXPECT_EQ(good(loaded("constraints: [requests_per_s >= 180 /min]\n")).limits.front().bound, 3);
}

TEST(Constraints, OnResultsAreRefusedWhereTheyStand) {
  const auto problem = [](const std::string& text) {
    return bad(training("constraints: [\"" + text + "\"]\n"));
  };
  EXPECT_TRUE(reports(problem("memroy <= 70 GB"), "s.yaml:31:16: constraints", "did you mean 'memory'"));
  EXPECT_TRUE(reports(problem("memory <= 70"), "s.yaml:31:26: constraints", "bare number"));
  EXPECT_TRUE(reports(problem("memory <= 70 s"), "s.yaml:31:26: constraints", "an amount of data"));
  EXPECT_TRUE(reports(problem("memory == 70 GB"), "s.yaml:31:23: constraints", "not by '=='"));
  EXPECT_TRUE(reports(problem("ttft_p95 <= 2 s"), "s.yaml:31:16: constraints", "unknown name"));
  EXPECT_TRUE(reports(problem("slowdown_p95 <= 10 %"), "s.yaml:31:16: constraints", "no faults"));
  EXPECT_TRUE(reports(problem("pp <= 8 or memory <= 7e10"), "s.yaml:31:27: constraints", "stand alone"));
}

TEST(NumbersOfGpus, MayBeAList) {
  const Study study =
      good(replaced(loaded("space: {tensor_parallel: [1, 2, 4]}\n"), "gpus: 16", "gpus: [16, 4, 8]"));
  EXPECT_EQ(study.gpu_counts, (std::vector<std::int64_t>{4, 8, 16}));
  EXPECT_EQ(study.gpus, 4);
  ASSERT_EQ(study.systems.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(study.systems[i].fabric.size(), study.gpu_counts[i]);
  const DesignSpace space = study.design_space();
  ASSERT_EQ(space.size(), 9U);
  for (std::uint64_t id = 0; id < space.size(); ++id) {
    const PointIndex point = space.point(id);
    EXPECT_EQ(point.plan.gpus(), study.gpus_of(point.setting)) << id;
    EXPECT_EQ(space.find(point.setting, point.plan), id);
  }
  const Study again = good(study.resolved_yaml);
  EXPECT_EQ(again.gpu_counts, study.gpu_counts);
  EXPECT_EQ(again.systems.back().fabric, study.systems.back().fabric);
  EXPECT_TRUE(
      reports(bad(replaced(loaded(""), "gpus: 16", "gpus: [4, 6]")), "s.yaml:28:7: gpus", "units of 4"));
  EXPECT_TRUE(reports(bad(replaced(loaded(""), "gpus: 16", "gpus: [4, 4]")), "s.yaml:28:11: gpus", "twice"));
  // All that the cluster comes in: one, two and three GPUs under one switch, then whole switches of four.
  StudyOptions all;
  all.all_counts = true;
  const Study up_to = good(replaced(loaded(""), "gpus: 16", "gpus: 12"), all);
  EXPECT_EQ(up_to.gpu_counts.back(), 12);
  for (const std::int64_t count : up_to.gpu_counts) EXPECT_TRUE(count < 4 || count % 4 == 0) << count;
}

}  // namespace
}  // namespace shardscape::sweep
