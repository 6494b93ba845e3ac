// Does `validate` read, judge, report and exit as its help says?
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program_under_test.h"
#include "tests/support/csv.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

constexpr const char* kHeader =
    "id,phase,model,cluster,stack,gpus,tensor_parallel,sequence_parallel,context_parallel,pipeline_parallel,"
    "data_parallel,zero_stage,recompute,schedule,virtual_stages,microbatch_size,num_microbatches,global_"
    "batch,"
    "sequence_length,prompt_tokens,output_tokens,concurrency,measured_step_time_s,measured_memory_peak_bytes,"
    "measured_oom,measured_ttft_s,measured_itl_s,measured_e2e_s,source\n";

constexpr const char* kTraining =
    "fast,training,llama3.1-8b,dgx-a100,megatron-lm,8,2,1,1,1,4,1,selective,1f1b,1,1,8,32,4096,,,,5,,0,,,,"
    "here\n"
    "slow,training,llama3.1-8b,dgx-a100,megatron-lm,8,8,1,1,1,1,0,full,1f1b,1,1,32,32,4096,,,,9,,,,,,\"a, "
    "b\"\n";

class ValidateTest : public ProgramTest {};

TEST_F(ValidateTest, JsonHasEveryStatistic) {
  write("runs.csv", std::string(kHeader) + kTraining);
  const Finished finished = run({"validate", "runs.csv", "--json", "--rows", "--hold-out", "1/2"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json file = json::parse(finished.out).at("files").at(0);
  EXPECT_EQ(file.at("path"), "runs.csv");
  EXPECT_EQ(file.at("kind"), "plans");
  const json& step_time = file.at("step_time");
  EXPECT_EQ(step_time.at("n"), 2);
  const json& rows = file.at("row_list");
  ASSERT_EQ(rows.size(), 2U);
  double sum = 0;
  for (const json& row : rows) {
    const json& pair = row.at("step_time");
    EXPECT_NEAR(pair.at("error"), pair.at("predicted").get<double>() / pair.at("measured").get<double>() - 1,
                1e-12);
    sum += std::abs(pair.at("error").get<double>());
  }
  EXPECT_NEAR(step_time.at("mape"), sum / 2, 1e-12);
  for (const char* name : {"median", "p90", "max"}) EXPECT_TRUE(step_time.at(name).is_number()) << name;
  EXPECT_EQ(file.at("memory").at("n"), 0);
  EXPECT_TRUE(file.at("memory").at("mape").is_null());
  EXPECT_EQ(file.at("oom").at("n"), 1);
  EXPECT_TRUE(file.at("oom").at("recall").is_null());
  EXPECT_EQ(file.at("ranking").at("groups"), 0);
  const json& parts = file.at("parts");
  EXPECT_EQ(parts.at("fitted").at("step_time").at("n").get<int>() +
                parts.at("held_out").at("step_time").at("n").get<int>(),
            2);
}

TEST_F(ValidateTest, PredictionsAreThoseOfTheReport) {
  write("runs.csv",
        std::string(kHeader) + kTraining +
            "chat,inference,llama3.1-8b,dgx-a100,nim,8,8,,1,1,1,,,,,,,,,1000,200,4,,,,0.2,0.02,,\n");
  const Finished finished = run({"validate", "runs.csv", "--json", "--rows", "--predictions", "out.csv"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(left_behind(), (std::vector<std::string>{"out.csv", "runs.csv"}));
  const std::vector<test::CsvRow> rows = test::read_csv(work() / "out.csv");
  ASSERT_EQ(rows.size(), 3U);
  const json list = json::parse(finished.out).at("files").at(0).at("row_list");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rows[i].at("id"), list[i].at("id"));
    EXPECT_EQ(std::stod(rows[i].at("predicted_step_time_s")),
              list[i].at("step_time").at("predicted").get<double>());
    EXPECT_GT(std::stod(rows[i].at("predicted_memory_peak_bytes")), 1e9);
    EXPECT_EQ(rows[i].at("predicted_itl_s"), "");
  }
  EXPECT_EQ(rows[2].at("predicted_step_time_s"), "");
  EXPECT_EQ(std::stod(rows[2].at("predicted_itl_s")), list[2].at("itl").at("predicted").get<double>());
  EXPECT_TRUE(rows[2].at("predicted_oom") == "0" || rows[2].at("predicted_oom") == "1");
}

TEST_F(ValidateTest, ReferencePathPredictsTheSame) {
  write("runs.csv", std::string(kHeader) + kTraining);
  ASSERT_EQ(run({"validate", "runs.csv", "--predictions", "a.csv"}).code, 0);
  ASSERT_EQ(run({"validate", "runs.csv", "--predictions", "b.csv", "--reference"}).code, 0);
  const std::vector<test::CsvRow> fast = test::read_csv(work() / "a.csv"),
                                  plain = test::read_csv(work() / "b.csv");
  ASSERT_EQ(fast.size(), 2U);
  ASSERT_EQ(plain.size(), fast.size());
  for (std::size_t i = 0; i < fast.size(); ++i) {
    for (const char* column : {"predicted_step_time_s", "predicted_memory_peak_bytes"}) {
      const double value = std::stod(plain[i].at(column));
      EXPECT_NEAR(std::stod(fast[i].at(column)), value, 1e-12 * value);  // sums in another order
    }
    EXPECT_EQ(fast[i].at("predicted_oom"), plain[i].at("predicted_oom"));
  }
}

TEST_F(ValidateTest, BadRowsAreLocatedAndTheOthersReported) {
  write(
      "runs.csv",
      std::string(kHeader) + kTraining +
          "odd,training,llama3.1-8c,dgx-a100,megatron-lm,8,2,1,1,1,4,x,full,1f1b,1,1,8,32,4096,,,,5,,,,,,\n"
          "few,training,llama3.1-8b,dgx-a100,megatron-lm,8,2,1,1,1,2,1,full,1f1b,1,1,,32,4096,,,,5,,,,,,\n"
          "who,training,llama3.1-8c,dgx-a100,megatron-lm,8,2,1,1,1,4,1,full,1f1b,1,1,8,32,4096,,,,5,,,,,,\n");
  const Finished finished = run({"validate", "runs.csv", "--json", "--predictions", "out.csv"});
  EXPECT_EQ(finished.code, 2);
  for (const char* part : {"runs.csv:4: zero_stage: 'x'", "runs.csv:5: gpus: there are 8",
                           "runs.csv:6: model: ", "llama3.1-8b", "3 problems"}) {
    EXPECT_TRUE(contains(finished.err, part)) << part << " not in\n" << finished.err;
  }
  const json file = json::parse(finished.out).at("files").at(0);
  EXPECT_EQ(file.at("step_time").at("n"), 2);
  EXPECT_EQ(file.at("problems").size(), 3U);
  EXPECT_EQ(test::read_csv(work() / "out.csv").size(), 2U);
}

TEST_F(ValidateTest, NothingIsWrittenWhereNothingIsPredicted) {
  write("runs.csv", "alpha,beta\n1,2\n");
  const Finished finished = run({"validate", "runs.csv", "absent.csv", "--predictions", "out.csv"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(contains(finished.err, "runs.csv:1: ")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "absent.csv: ")) << finished.err;
  EXPECT_EQ(left_behind(), std::vector<std::string>{"runs.csv"});
}

TEST_F(ValidateTest, MeasurementsAreNeverOverwritten) {
  write("runs.csv", std::string(kHeader) + kTraining);
  const Finished finished = run({"validate", "runs.csv", "--predictions", "./runs.csv"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(read_file(work() / "runs.csv"), std::string(kHeader) + kTraining);
}

TEST_F(ValidateTest, UnwritablePredictionsAreAnEnvironmentFailure) {
  write("runs.csv", std::string(kHeader) + kTraining);
  const Finished finished = run({"validate", "runs.csv", "--predictions", "absent/out.csv"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_TRUE(contains(finished.err, "absent/out.csv: cannot be written")) << finished.err;
}

TEST_F(ValidateTest, CheckMissesBarsWithCodeThree) {
  write("runs.csv", std::string(kHeader) + kTraining);
  const std::vector<std::string> loose = {"validate", "runs.csv", "--check", "--bar", "step_time.mape=1000%"};
  EXPECT_EQ(run(loose).code, 0);
  const Finished strict = run({"validate", "runs.csv", "--check", "--bar", "step_time.mape=0.0001%"});
  EXPECT_EQ(strict.code, 3);
  EXPECT_TRUE(contains(strict.out, "MISSED")) << strict.out;
  EXPECT_TRUE(contains(strict.err, "runs.csv: step_time.mape: outside tolerance")) << strict.err;
  EXPECT_EQ(run({"validate", "runs.csv", "--bar", "step_time.mape=0.0001%"}).code,
            0);  // only told, not asked
}

TEST_F(ValidateTest, BadOptionsAreExplained) {
  write("runs.csv", std::string(kHeader) + kTraining);
  const Finished bar =
      run({"validate", "runs.csv", "--check", "--bar", "step_tim.mape=5%", "--bar", "ttft.mape=x"});
  EXPECT_EQ(bar.code, 2);
  EXPECT_TRUE(contains(bar.err, "did you mean 'step_time.mape'?")) << bar.err;
  EXPECT_TRUE(contains(bar.err, "2 problems")) << bar.err;
  const Finished idle = run({"validate", "runs.csv", "--check", "--bar", "ttft.mape=5%"});
  EXPECT_EQ(idle.code, 2);
  EXPECT_TRUE(contains(idle.err, "ttft.mape: has no effect")) << idle.err;
  EXPECT_EQ(run({"validate", "runs.csv", "--hold-out", "2"}).code, 2);
}

TEST_F(ValidateTest, PublishedFiguresComeWithTheProgram) {
  const Finished finished = run({"validate", "--json", "--check"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  const json files = json::parse(finished.out).at("files");
  ASSERT_GE(files.size(), 3U);
  for (const json& file : files) {
    EXPECT_FALSE(file.at("source").get<std::string>().empty());
    EXPECT_FALSE(file.at("checks").empty());
    EXPECT_GT(file.at("rows").get<int>(), 0);
  }
}

TEST_F(ValidateTest, HelpListsTheColumns) {
  const Finished finished = run({"validate", "--help"});
  EXPECT_EQ(finished.code, 0);
  for (const char* part :
       {"measured_memory_peak_bytes", "sm_clock_hz", "gpus_per_node", "--bar", "Examples"}) {
    EXPECT_TRUE(contains(finished.out, part)) << part;
  }
}

}  // namespace
}  // namespace shardscape::cli
