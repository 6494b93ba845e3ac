// Does `search` show what `sweep` and `top` show, and say what its answer is worth?
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class SearchTest : public ProgramTest {
 protected:
  void SetUp() override { write("study.yaml", kSmallStudy); }
  Finished search(std::vector<std::string> more) {
    more.insert(more.begin(), {"search", "study.yaml", "--progress", "none"});
    return run(more);
  }
  json rows_of(const Finished& finished) {
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
  json top(std::vector<std::string> more) {
    more.insert(more.begin(), {"top", "all.h5"});
    more.insert(more.end(), {"--format", "json"});
    return rows_of(run(more));
  }
};

TEST_F(SearchTest, ShowsWhatSweepAndTopShow) {
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "all.h5"}).code, 0);
  EXPECT_EQ(rows_of(search({"--format", "json"})), top({}));
  EXPECT_EQ(rows_of(search({"-n", "3", "--format", "json"})), top({"-n", "3"}));
  const std::string front = "step_time_s,memory_peak_bytes";
  EXPECT_EQ(rows_of(search({"--pareto", front, "--format", "json"})), top({"--pareto", front}));
}

TEST_F(SearchTest, KeepsToBoundsOnResultsAsASweepDoes) {
  const std::vector<std::string> all = {"sweep", "study.yaml", "-o", "all.h5", "--confirm", "0", "--force"};
  ASSERT_EQ(run(all).code, 0);
  const json best = top({"-n", "5"});
  // Less memory than the best plan: the answer is another.
  const double memory = best.at(0).at("memory_peak_bytes").get<double>();
  const std::string bounds = "constraints=['memory_peak_bytes < " + std::to_string(memory) + "']";
  std::vector<std::string> bounded = all;
  bounded.insert(bounded.end(), {"--set", bounds});
  ASSERT_EQ(run(bounded).code, 0);
  const json found = rows_of(search({"-n", "4", "--format", "json", "--set", bounds}));
  EXPECT_EQ(found, top({"-n", "4"}));
  ASSERT_FALSE(found.empty());
  for (const json& row : found) EXPECT_LT(row.at("memory_peak_bytes").get<double>(), memory);
  EXPECT_EQ(run({"verify", "all.h5"}).code, 0);
}

TEST_F(SearchTest, FindsTheBestExecutedSteps) {
  const std::vector<std::string> few = {"--set", "space.rank_order=[tp-cp-dp-pp]", "--set",
                                        "space.microbatch_size=[1]"};
  std::vector<std::string> sweep = {"sweep", "study.yaml", "-o", "all.h5", "--set", "mode=flattened"};
  sweep.insert(sweep.end(), few.begin(), few.end());
  ASSERT_EQ(run(sweep).code, 0);
  for (const std::string count : {"1", "5"}) {
    std::vector<std::string> wanted = {"--mode", "flattened", "-n", count, "--format", "json"};
    wanted.insert(wanted.end(), few.begin(), few.end());
    const Finished finished = search(wanted);
    EXPECT_EQ(rows_of(finished), top({"-n", count}));
    EXPECT_TRUE(contains(finished.err, "no point that was not executed belongs here")) << finished.err;
    EXPECT_FALSE(contains(finished.err, "every point is evaluated")) << finished.err;
  }
  // Asked to execute what it shows, a search of prices says which plan executes best of all.
  std::vector<std::string> priced = {"-n", "1", "--confirm", "1"};
  priced.insert(priced.end(), few.begin(), few.end());
  const auto best = top({"-n", "1"}).at(0).at("point_id").get<std::uint64_t>();
  const Finished confirmed = search(priced);
  EXPECT_TRUE(contains(confirmed.out, "executed: point " + std::to_string(best) + ", ")) << confirmed.out;
  EXPECT_TRUE(contains(confirmed.out, " is the best of all, as far as tests show that floors hold; "))
      << confirmed.out;
  EXPECT_TRUE(contains(confirmed.out, " given up as slower")) << confirmed.out;
  const Finished front = search({"--pareto", "step_time_s,memory_peak_bytes", "--confirm", "1"});
  EXPECT_TRUE(contains(front.out, "is not confirmed of a front")) << front.out;
  EXPECT_EQ(search({"--mode", "executed"}).code, 2);
}

TEST_F(SearchTest, ExecutedStepsUnderFaultsKeepTheirSamplesWithinTheBudget) {
  write("sick.yaml",
        std::string(kSmallStudy) +
            "faults: {kind: soft_link, samples: 4, derate: {distribution: uniform, min: 0.1, max: "
            "0.9}}\n");
  const auto executed = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"search",     "sick.yaml",
                                      "--mode",     "flattened",
                                      "--progress", "none",
                                      "-n",         "2",
                                      "--set",      "space.rank_order=[tp-cp-dp-pp]",
                                      "--set",      "space.microbatch_size=[1]"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const Finished whole = executed({"-o", "found.h5"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_FALSE(contains(whole.out, "without fault samples")) << whole.out;
  EXPECT_EQ(run({"verify", "found.h5"}).code, 0);
  // No time is left for anything: what is said and kept is what there is.
  const Finished none = executed({"-o", "none.h5", "--budget", "0.001s"});
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_FALSE(contains(none.out, "exact")) << none.out;
}

TEST_F(SearchTest, KeepsAFileOfWhatItVisited) {
  const Finished finished = search({"-n", "1", "-o", "found.h5"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "exact: no point that was not visited belongs here")) << finished.out;
  EXPECT_EQ(run({"verify", "found.h5"}).code, 0);
  const results::ResultReader reader(work() / "found.h5");
  EXPECT_TRUE(reader.complete());
  EXPECT_FALSE(reader.stands_for_study());
  EXPECT_EQ(reader.layout().selection.kind, results::SelectionKind::search);
  EXPECT_LT(reader.row_count(), reader.layout().selection.study_points);
  // Written again it is the same; nothing that is there is replaced without being asked to.
  EXPECT_EQ(search({"-n", "1", "-o", "found.h5"}).code, 2);
  EXPECT_EQ(search({"-n", "1", "-o", "found.h5", "--force", "--threads", "1"}).code, 0);
  EXPECT_EQ(run({"diff", "found.h5", "found.h5"}).code, 0);
  EXPECT_TRUE(contains(run({"top", "found.h5"}).out, "that a search visited"));
  ASSERT_EQ(search({"-n", "2", "-o", "more.h5"}).code, 0);
  const Finished merged = run({"merge", "found.h5", "more.h5", "-o", "both.h5"});
  EXPECT_EQ(merged.code, 2);
  EXPECT_TRUE(
      contains(merged.err, "found.h5: holds the points that a search visited, which are no part of a sweep"))
      << merged.err;
}

TEST_F(SearchTest, ABudgetLeavesTheBestFoundAndABound) {
  const Finished finished = search({"--budget", "1 points", "-n", "1"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "not decided")) << finished.out;
  EXPECT_TRUE(contains(finished.out, "stopped: no point that was not visited is better than"))
      << finished.out;
  const Finished certified = search({"--within", "5%"});
  EXPECT_TRUE(contains(certified.out, "certified: within 5.0 % of the best")) << certified.out;
}

TEST_F(SearchTest, UnderFaultsItRacesThePoints) {
  write("sick.yaml",
        std::string(kSmallStudy) +
            "faults: {kind: soft_link, samples: 60, derate: {distribution: uniform, min: 0.1, max: 0.9}}\n");
  const std::vector<std::string> by_expected = {"--set",
                                                "objectives=[expected_step_time_s, memory_peak_bytes]"};
  const auto with = [&](std::vector<std::string> command) {
    command.insert(command.end(), by_expected.begin(), by_expected.end());
    return run(command);
  };
  ASSERT_EQ(with({"sweep", "sick.yaml", "-o", "all.h5"}).code, 0);
  const Finished finished =
      with({"search", "sick.yaml", "--progress", "none", "-n", "5", "--format", "json"});
  EXPECT_EQ(rows_of(finished), top({"-n", "5"}));
  EXPECT_TRUE(contains(finished.err, "fault samples: ")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "exact: no point that was not visited belongs here")) << finished.err;
  const std::string front = "expected_step_time_s,memory_peak_bytes";
  EXPECT_EQ(
      rows_of(with({"search", "sick.yaml", "--progress", "none", "--pareto", front, "--format", "json"})),
      top({"--pareto", front}));
  ASSERT_EQ(with({"search", "sick.yaml", "--progress", "none", "-n", "1", "-o", "found.h5"}).code, 0);
  EXPECT_EQ(run({"verify", "found.h5"}).code, 0);
}

/// The first order of ranks needs 12.0 GiB, as its exchanges run in pairs between the nodes, the second 11.6 GiB.
TEST_F(SearchTest, OrdersOfRanksThatTakeMemoryAreToldApart) {
  write("orders.yaml",
        "study: orders\nmodel: gpt-oss-20b\ncluster: dgx-h100\ngpus: 64\nstack: megatron-core\n"
        "workload: {phase: training, sequence_length: 2048, global_batch: 64, precision: bf16}\n"
        "space: {tensor_parallel: [4], sequence_parallel: [true], context_parallel: [1], pipeline_parallel: "
        "[4],\n"
        "  data_parallel: fill, expert_parallel: [8], expert_tensor_parallel: [1], zero_stage: [1],\n"
        "  recompute: [full], microbatch_size: [2], schedule: [interleaved], virtual_stages: [2],\n"
        "  rank_order: [pp-dp-cp-tp, dp-tp-cp-pp]}\n"
        "hardware: {device.hbm.capacity: [\"11.8 GiB\"]}\n"
        "objectives: [step_time_s, memory_peak_bytes]\n");
  ASSERT_EQ(run({"sweep", "orders.yaml", "-o", "all.h5"}).code, 0);
  const json best = top({"-n", "1"});
  ASSERT_EQ(best.size(), 1U);
  EXPECT_EQ(rows_of(run({"search", "orders.yaml", "--progress", "none", "-n", "1", "--format", "json"})),
            best);
}

/// A100s have no unit for fp8: such plans are no results, by whatever objective.
TEST_F(SearchTest, APrecisionThatADeviceLacksIsNoResult) {
  const Finished finished = search({"--set", "workload.precision=[bf16, fp8]", "--set",
                                    "objectives=[mfu, memory_peak_bytes]", "-n", "1", "--format", "json"});
  EXPECT_EQ(rows_of(finished).size(), 1U);
  EXPECT_TRUE(contains(finished.err, "exact: no point that was not visited belongs here")) << finished.err;
}

TEST_F(SearchTest, StoppedBeforeAnyPointItShowsNone) {
  const Finished finished = search({"--budget", "0s", "-o", "none.h5"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_TRUE(contains(finished.err, "no point was visited before the search was stopped")) << finished.err;
  EXPECT_FALSE(std::filesystem::exists(work() / "none.h5"));
}

TEST_F(SearchTest, WithoutBoundsABudgetIsRefused) {
  const Finished finished =
      search({"--set", "objectives=[memory_peak_bytes]", "--budget", "3 points", "-o", "none.h5"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(contains(finished.err, "--budget: search prunes by bounds, and memory_peak_bytes has none"))
      << finished.err;
  EXPECT_FALSE(std::filesystem::exists(work() / "none.h5"));
}

TEST_F(SearchTest, WithoutBoundsItSweeps) {
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "all.h5"}).code, 0);
  const Finished finished =
      search({"--set", "objectives=[memory_peak_bytes]", "-n", "4", "-o", "found.h5", "--format", "json"});
  EXPECT_TRUE(contains(finished.err, "memory_peak_bytes has none: every point is evaluated, all "))
      << finished.err;
  EXPECT_EQ(rows_of(finished), top({"--by", "memory_peak_bytes", "-n", "4"}));
}

TEST_F(SearchTest, WithNothingFeasibleItSaysSo) {
  const Finished finished = search({"--set", "constraints=['tp > 64']", "-o", "none.h5"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "against a constraint")) << finished.out;
  EXPECT_EQ(run({"verify", "none.h5"}).code, 0);
}

// A simulation of a million requests takes longer than that.
TEST_F(SearchTest, ABudgetIsHeardWithinASimulation) {
  write("served.yaml",
        "model: llama3.1-8b\ncluster: dgx-h100\ngpus: 8\nstack: vllm\n"
        "workload: {phase: inference, precision: bf16, prompt_tokens: {lognormal: {mean: 500, cv: 1}},\n"
        "  output_tokens: {lognormal: {mean: 100, cv: 1}}, request_rate: 20 /s,\n"
        "  client: {requests: 1000000, statistic: run}}\n"
        "space: {tensor_parallel: [1, 2, 4, 8]}\nobjectives: [e2e_s]\n");
  const Finished finished = run({"search", "served.yaml", "--budget", "0.1s", "--progress", "none"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.err, "no point was visited before the search was stopped")) << finished.err;
}

TEST_F(SearchTest, ABudgetOfPointsIsNotExceeded) {
  for (const char* mode : {"hierarchical", "flattened"})
    for (const char* threads : {"1", "2"})
      for (const int points : {1, 2, 5, 8}) {
        const Finished finished =
            run({"search", test::source_dir() + "/sweep/studies/llama3.1-70b-64xa100.yaml", "--mode", mode,
                 "--threads", threads, "--budget", std::to_string(points) + " points", "--confirm", "0", "-o",
                 "out.h5", "--force", "--progress", "none"});
        ASSERT_EQ(finished.code, 0) << finished.err;
        const Finished verified = run({"verify", "out.h5"});
        EXPECT_TRUE(contains(verified.out, "out.h5: " + std::to_string(points) + " point"))
            << mode << threads << verified.out;
      }
}

TEST_F(SearchTest, ABudgetThatIsJustUsedUpLeavesNothingToExecute) {
  ASSERT_EQ(search({"-n", "3", "--confirm", "0", "-o", "out.h5"}).code, 0);
  const std::uint64_t visited = results::ResultReader(work() / "out.h5").row_count();
  const std::string just = std::to_string(visited) + " points",
                    more = std::to_string(visited + 1) + " points";
  const Finished none = search({"-n", "3", "--confirm", "3", "--budget", just});
  EXPECT_TRUE(contains(none.out, "\nexact")) << none.out;
  EXPECT_TRUE(contains(none.out, "executed: rows alone; the budget was used up before")) << none.out;
  const Finished one = search({"-n", "3", "--confirm", "3", "--budget", more});
  EXPECT_TRUE(contains(one.out, "; 1 point executed or known so")) << one.out;
}

TEST_F(SearchTest, ConfirmingCountsToTheBudget) {
  write("study.yaml", kSmallStudy);
  const Finished finished =
      run({"search", "study.yaml", "--budget", "1ms", "--confirm", "3", "--progress", "none"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "0 rows executed in")) << finished.out;
  EXPECT_TRUE(contains(finished.out, "3 left as the budget was used up")) << finished.out;
}

}  // namespace
}  // namespace shardscape::cli
