// Are the rows that `top` and `search` show executed as well, ranked by that, and one row where nothing tells them
// apart?
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class ConfirmTest : public ProgramTest {
 protected:
  void sweep(const char* study, const char* output, const char* mode = "hierarchical") {
    write("study.yaml", study);
    const Finished swept = run(
        {"sweep", "study.yaml", "-o", output, "--progress", "none", "--set", std::string("mode=") + mode});
    ASSERT_EQ(swept.code, 0) << swept.err;
  }
  json rows(std::vector<std::string> command) {
    command.insert(command.end(), {"--format", "json"});
    const Finished finished = run(command);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
  /// `time` of every feasible point in a sweep of the flattened mode.
  std::map<std::uint64_t, double> flattened(const char* study, const char* time) {
    sweep(study, "flattened.h5", "flattened");
    std::map<std::uint64_t, double> times;
    for (const json& row : rows({"top", "flattened.h5", "-n", "100000"}))
      times[row.at("point_id")] = row.at(time);
    return times;
  }
  void expect_executed(const json& shown, const std::map<std::uint64_t, double>& times,
                       const std::string& time) {
    ASSERT_FALSE(shown.empty());
    double last = 0;
    for (const json& row : shown) {
      EXPECT_EQ(row.at("executed_" + time), times.at(row.at("point_id"))) << row;
      EXPECT_GE(row.at("executed_" + time).get<double>(), last);
      last = row.at("executed_" + time);
    }
  }

  static constexpr const char* kFewPlans =
      "study: few\n"
      "model: llama3.1-8b\n"
      "cluster: dgx-a100\n"
      "gpus: 8\n"
      "stack: megatron-lm\n"
      "workload: {phase: training, sequence_length: 4096, global_batch: 16, precision: bf16}\n"
      "space:\n"
      "  tensor_parallel: [2, 4]\n"
      "  pipeline_parallel: powers_of_two\n"
      "  data_parallel: fill\n"
      "  zero_stage: [1, 2]\n"
      "  recompute: [none, full]\n"
      "  microbatch_size: [1, 2]\n"
      "objectives: [step_time_s, memory_peak_bytes]\n";
};

TEST_F(ConfirmTest, ExecutedTimesAreThoseOfTheFlattenedModeAndRank) {
  const auto times = flattened(kFewPlans, "step_time_s");
  sweep(kFewPlans, "out.h5");
  const json plain = rows({"top", "out.h5", "-n", "8"});
  const json shown = rows({"top", "out.h5", "-n", "8", "--confirm", "8"});
  expect_executed(shown, times, "step_time_s");
  // The rows are the same; scripts that do not ask get what the file holds.
  std::set<std::uint64_t> before, after;
  for (const json& row : plain) {
    before.insert(row.at("point_id").get<std::uint64_t>());
    EXPECT_FALSE(row.contains("executed_step_time_s"));
  }
  for (const json& row : shown) after.insert(row.at("point_id").get<std::uint64_t>());
  EXPECT_EQ(before, after);
}

TEST_F(ConfirmTest, RowsThatAreNotConfirmedKeepTheirPlacesAndHaveNoTime) {
  sweep(kFewPlans, "out.h5");
  const json plain = rows({"top", "out.h5", "-n", "6"});
  const json shown = rows({"top", "out.h5", "-n", "6", "--confirm", "2"});
  ASSERT_EQ(shown.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(shown[i].at("executed_step_time_s").is_null(), i >= 2);
    if (i >= 2) {
      EXPECT_EQ(shown[i].at("point_id"), plain[i].at("point_id"));
    }
  }
  const std::string csv = run({"top", "out.h5", "-n", "1", "--confirm", "1", "--format", "csv"}).out;
  EXPECT_TRUE(csv.substr(0, csv.find('\n')).ends_with(",executed_step_time_s")) << csv;
}

TEST_F(ConfirmTest, TableSaysWhatWasExecutedAndZeroLeavesItOut) {
  sweep(kFewPlans, "out.h5");
  const std::string table = run({"top", "out.h5", "-n", "4"}).out;
  EXPECT_TRUE(contains(table, "step_time  executed")) << table;
  EXPECT_TRUE(contains(table, "4 rows executed in ")) << table;
  EXPECT_TRUE(contains(table, ": the order ")) << table;
  const std::string without = run({"top", "out.h5", "-n", "4", "--confirm", "0"}).out;
  EXPECT_FALSE(contains(without, "executed")) << without;
}

TEST_F(ConfirmTest, WhatCannotBeConfirmedIsSaid) {
  write("study.yaml", kFewPlans);
  const auto refused = run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "json", "--confirm", "2"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "shardscape top out.h5 --confirm 2 --format json")) << refused.err;
  EXPECT_FALSE(fs::exists(work() / "out.h5"));
  sweep(kFewPlans, "out.h5");
  const std::string table = run({"top", "out.h5", "--where", "status == 'ok'", "--confirm", "2"}).out;
  EXPECT_TRUE(contains(table, "not executed: --where names a status")) << table;
}

TEST_F(ConfirmTest, ServersAreExecutedForEveryLoad) {
  const auto times = flattened(kInferenceStudy, "e2e_s");
  sweep(kInferenceStudy, "out.h5");
  expect_executed(rows({"top", "out.h5", "--confirm", "10"}), times, "e2e_s");
}

TEST_F(ConfirmTest, SearchConfirmsWhatTopDoes) {
  sweep(kFewPlans, "out.h5");
  EXPECT_EQ(rows({"search", "study.yaml", "--progress", "none", "-n", "4", "--confirm", "4"}),
            rows({"top", "out.h5", "-n", "4", "--confirm", "4"}));
}

TEST_F(ConfirmTest, ExecutedFilesSayThatTheyHoldIt) {
  sweep(kFewPlans, "out.h5", "flattened");
  const std::string asked = run({"top", "out.h5", "--confirm", "2"}).out;
  EXPECT_TRUE(contains(asked, "not executed: the file holds executed times")) << asked;
  EXPECT_FALSE(contains(run({"top", "out.h5"}).out, "not executed"));
}

// Some 10^11 events: nothing that would end while somebody waits.
TEST_F(ConfirmTest, PlansTooLargeToExecuteAreSaidToBe) {
  sweep(
      "study: large\nmodel: llama3.1-405b\ncluster: dgx-h100\ngpus: 16384\nstack: megatron-core\n"
      "workload: {phase: training, sequence_length: 131072, global_batch: 128, precision: bf16}\n"
      "space: {tensor_parallel: [1], context_parallel: [128], pipeline_parallel: [16], data_parallel: fill,\n"
      "  zero_stage: [3], recompute: [full], schedule: [interleaved], virtual_stages: [8],\n"
      "  rank_order: [tp-cp-pp-dp]}\n"
      "objectives: [step_time_s]\n",
      "out.h5");
  const std::string table = run({"top", "out.h5"}).out;
  EXPECT_TRUE(contains(table, "0 rows executed in ")) << table;
  EXPECT_TRUE(contains(
      table, ", 1 not tried, as execution may take longer than this command should: --confirm 10 does"))
      << table;
  const std::string asked = run({"top", "out.h5", "--confirm", "1"}).out;
  EXPECT_TRUE(contains(asked, "0 rows executed in ")) << asked;
  EXPECT_TRUE(contains(asked, ", 1 would take too long")) << asked;
}

// A rough count of this plan says some 24 million events, more than are executed unasked; as ranks behind switches are
// alike and executed once, it has a hundredth, and is executed.
TEST_F(ConfirmTest, PlansWhoseRanksAreAlikeAreExecutedUnasked) {
  sweep(
      "study: alike\nmodel: llama3.1-70b\ncluster: dgx-h100\ngpus: 128\nstack: megatron-core\n"
      "workload: {phase: training, sequence_length: 8192, global_batch: 512, precision: bf16}\n"
      "space: {tensor_parallel: [4], context_parallel: [2], pipeline_parallel: [2], data_parallel: fill,\n"
      "  sequence_parallel: [true], zero_stage: [1], schedule: [interleaved], virtual_stages: [4, 2]}\n"
      "objectives: [step_time_s]\n",
      "out.h5");
  const std::string table = run({"top", "out.h5"}).out;
  EXPECT_TRUE(contains(table, "2 rows executed in ")) << table;
  const std::string asked = run({"top", "out.h5", "--confirm", "2"}).out;
  const std::size_t end = table.find(" rows executed in ");
  EXPECT_EQ(table.substr(0, end), asked.substr(0, end));
}

// Experts on 64 ranks of 512: the first row is begun and given up, and the second is not tried.
TEST_F(ConfirmTest, RowsThatAreGivenUpAreNotSaidToBeUntried) {
  sweep(
      "study: experts\nmodel: deepseek-v3\ncluster: dgx-h100\ngpus: 512\nstack: megatron-core\n"
      "workload: {phase: training, sequence_length: 4096, global_batch: 1024, precision: fp8}\n"
      "space: {tensor_parallel: [1], pipeline_parallel: [8, 4], expert_parallel: [64], data_parallel: fill,\n"
      "  recompute: [full], zero_stage: [1], schedule: [1f1b]}\n"
      "objectives: [step_time_s]\n",
      "out.h5");
  const std::string table = run({"top", "out.h5"}).out;
  EXPECT_TRUE(contains(table, "0 rows executed in ")) << table;
  EXPECT_TRUE(contains(table,
                       ", 1 given up after 2,000,000 events, 1 not tried, as execution may take longer "
                       "than this command should: --confirm 10 does"))
      << table;
}

// Brute force: all rows, of which nothing but the number and the ZeRO stage is looked away from.
TEST_F(ConfirmTest, PlansThatTieAreOneRowOfTheTable) {
  sweep(kFewPlans, "out.h5");
  std::map<std::string, std::vector<int>> alike;
  const json all = rows({"top", "out.h5", "-n", "100000"});
  for (json row : all) {
    const int stage = row.at("zero_stage");
    row.erase("point_id"), row.erase("zero_stage");
    alike[row.dump()].push_back(stage);
  }
  ASSERT_LT(alike.size(), all.size());
  const std::string table = run({"top", "out.h5", "-n", std::to_string(all.size()), "--confirm", "0"}).out;
  const std::string rows_said = " in " + std::to_string(alike.size()) + " rows";
  EXPECT_TRUE(contains(table, rows_said)) << rows_said << " not in\n" << table;
  std::size_t both = 0, named = 0;
  for (const auto& tied : alike) both += tied.second == std::vector{1, 2} ? 1 : 0;
  for (std::size_t at = table.find(" 1, 2 "); at != std::string::npos; at = table.find(" 1, 2 ", at + 1))
    ++named;
  EXPECT_EQ(named, both) << table;
}

TEST_F(ConfirmTest, TheOrderIsThatOfTheRowsThatWereExecuted) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--confirm", "0", "--progress", "none"}).code, 0);
  const std::string all = run({"top", "out.h5", "-n", "4"}).out,
                    some = run({"top", "out.h5", "-n", "14"}).out;
  EXPECT_TRUE(contains(all, "of CPU: the order ")) << all;
  EXPECT_FALSE(contains(all, "of these")) << all;
  EXPECT_TRUE(contains(some, "10 rows executed in")) << some;
  EXPECT_TRUE(contains(some, ": the order of these 10 ")) << some;
  EXPECT_TRUE(contains(some, "; 4 more were not executed\n")) << some;
  const std::string of_each = run({"top", "out.h5", "--per", "tp,pp", "--confirm", "2"}).out;
  EXPECT_TRUE(contains(of_each, " of CPU; ")) << of_each;
  EXPECT_TRUE(contains(of_each, " more were not executed\n")) << of_each;
}

TEST_F(ConfirmTest, ASweepThatIsStoppedWhileItConfirmsIsInterruptedAndItsFileWhole) {
  Running running =
      start({"sweep", test::source_dir() + "/sweep/studies/llama3.1-70b-64xa100.yaml", "-o", "out.h5",
             "--set", "workload.global_batch=8192", "--confirm", "5", "--progress", "none"});
  while (!fs::exists(work() / "out.h5") && !running.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.send(SIGINT);
  const Finished finished = running.wait();
  EXPECT_EQ(finished.code, 130) << finished.err;
  EXPECT_TRUE(contains(finished.out, "left when it was stopped")) << finished.out;
  EXPECT_TRUE(contains(finished.err, "or the whole file, are safe")) << finished.err;
  EXPECT_EQ(run({"verify", "out.h5"}).code, 0);
  const Finished again =
      run({"sweep", test::source_dir() + "/sweep/studies/llama3.1-70b-64xa100.yaml", "-o", "out.h5", "--set",
           "workload.global_batch=8192", "--resume", "--progress", "none"});
  EXPECT_TRUE(contains(again.err, "is complete already; see it with: shardscape top out.h5")) << again.err;
}

TEST_F(ConfirmTest, ASearchThatIsEndedWhileItConfirmsSaysThatItsFileIsWhole) {
  Running running =
      start({"search", test::source_dir() + "/sweep/studies/llama3.1-70b-64xa100.yaml", "-o", "out.h5",
             "--set", "workload.global_batch=8192", "--confirm", "5", "--progress", "none"});
  while (!fs::exists(work() / "out.h5") && !running.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.send(SIGTERM);
  running.send(SIGINT);
  const Finished finished = running.wait();
  EXPECT_EQ(finished.code, 130) << finished.err;
  EXPECT_TRUE(contains(finished.err, "the file, where it is there, is whole")) << finished.err;
  EXPECT_EQ(run({"verify", "out.h5"}).code, 0);
}

}  // namespace
}  // namespace shardscape::cli
