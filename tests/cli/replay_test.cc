// Does a step go out as traces and come back with its time, and are bad traces refused with their place?
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class ReplayTest : public ProgramTest {
 protected:
  static constexpr const char* kPoint = "tp=2,pp=2,dp=2,mbs=1,recompute=none,zero=1,schedule=1f1b";

  void export_step(const std::string& folder) {
    write("study.yaml", kSmallStudy);
    const Finished finished = run({"simulate", "study.yaml", "--point", kPoint, "--chakra", folder});
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_TRUE(contains(finished.err, "nodes of 8 ranks to " + folder)) << finished.err;
  }
};

TEST_F(ReplayTest, ExportedStepTakesItsPredictedTime) {
  export_step("traces");
  const Finished simulated = run({"simulate", "study.yaml", "--point", kPoint, "--json"});
  const Finished replayed =
      run({"replay", "traces", "--cluster", "dgx-a100", "--stack", "megatron-lm", "--json"});
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  const json document = json::parse(replayed.out);
  const double step = json::parse(simulated.out).at("step_time_s");
  EXPECT_NEAR(document.at("step_time_s").get<double>(), step, 0.01 * step);
  ASSERT_EQ(document.at("ranks").size(), 8U);
  for (const json& rank : document.at("ranks")) {
    const double sum = rank.at("compute_s").get<double>() + rank.at("exposed_comm_s").get<double>() +
                       rank.at("idle_s").get<double>();
    EXPECT_NEAR(sum, document.at("step_time_s").get<double>(), 1e-9 * step);
  }
  EXPECT_TRUE(contains(run({"replay", "traces", "--cluster", "dgx-a100"}).out, "step time"));
}

TEST_F(ReplayTest, TracesOfAnotherRunAreNotMixed) {
  export_step("traces");
  const Finished again = run({"simulate", "study.yaml", "--point", kPoint, "--chakra", "traces"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(contains(again.err, "holds traces already")) << again.err;
  EXPECT_TRUE(again.out.empty());
}

TEST_F(ReplayTest, TruncatedTraceIsBadInput) {
  export_step("traces");
  const fs::path file = work() / "traces" / "shardscape.3.et";
  fs::resize_file(file, fs::file_size(file) / 2 + 1);
  const Finished finished = run({"replay", "traces", "--cluster", "dgx-a100"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(finished.out.empty());
  EXPECT_TRUE(contains(finished.err, "shardscape.3.et")) << finished.err;
}

TEST_F(ReplayTest, BadArguments) {
  EXPECT_EQ(run({"replay", "nowhere", "--cluster", "dgx-a100"}).code, 2);
  EXPECT_EQ(run({"replay", "nowhere"}).code, 2);
  export_step("traces");
  EXPECT_EQ(run({"replay", "traces", "--cluster", "dgx-a101"}).code, 2);
  EXPECT_EQ(run({"replay", "traces", "--cluster", "dgx-a100", "--stack", "megatron"}).code, 2);
  const Finished small = run({"replay", "traces", "--cluster", "dgx-a100", "--gpus", "4"});
  EXPECT_EQ(small.code, 2);
  EXPECT_TRUE(contains(small.err, "traces of 8 ranks, the fabric has 4 GPUs")) << small.err;
  write("inference.yaml", kInferenceStudy);
  EXPECT_EQ(run({"simulate", "inference.yaml", "--chakra", "other"}).code, 2);
  EXPECT_EQ(run({"simulate", "inference.yaml", "--schedule-text"}).code, 2);
  EXPECT_EQ(run({"simulate", "study.yaml", "--schedule-text", "--json"}).code, 2);
  EXPECT_EQ(run({"simulate", "study.yaml", "--width", "80"}).code, 2);
  EXPECT_FALSE(fs::exists(work() / "other"));
}

TEST_F(ReplayTest, ScheduleChartIsTheSameEveryTime) {
  write("study.yaml", kSmallStudy);
  const std::vector<std::string> words = {
      "simulate",        "study.yaml", "--point", "tp=2,pp=4,dp=1,schedule=zero_bubble",
      "--schedule-text", "--width",    "90"};
  const Finished finished = run(words);
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "zero_bubble, 4 stages, 32 microbatches; a column is ")) << finished.out;
  EXPECT_TRUE(contains(finished.out, "\nstage 3  ")) << finished.out;
  EXPECT_TRUE(contains(finished.out, "F forward, B input gradient, W weight gradient")) << finished.out;
  EXPECT_EQ(run(words).out, finished.out);
}

}  // namespace
}  // namespace shardscape::cli
