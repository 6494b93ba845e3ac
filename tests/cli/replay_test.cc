// Does a step go out as traces and come back with its time, and are bad traces refused with their place?
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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

TEST_F(ReplayTest, ExecutedStepComesBackExactly) {
  write("study.yaml", kSmallStudy);
  int folder = 0;
  for (const char* point : {"tp=2,pp=2,dp=2,mbs=1,recompute=full,zero=1,schedule=interleaved,vpp=2",
                            "tp=2,pp=2,dp=2,mbs=1,recompute=none,zero=0,schedule=zero_bubble"}) {
    for (const char* fault : {"", "0-switch 0=0.5"}) {
      const std::string traces = "traces" + std::to_string(folder++);
      std::vector<std::string> simulate = {"simulate",  "study.yaml", "--point", point,   "--mode",
                                           "flattened", "--chakra",   traces,    "--json"};
      std::vector<std::string> replay = {"replay",  traces,        "--cluster", "dgx-a100",
                                         "--stack", "megatron-lm", "--json"};
      for (std::vector<std::string>* words : {&simulate, &replay}) {
        if (*fault != '\0') words->insert(words->end(), {"--fault", fault});
      }
      const Finished simulated = run(simulate);
      ASSERT_EQ(simulated.code, 0) << simulated.err;
      const Finished replayed = run(replay);
      ASSERT_EQ(replayed.code, 0) << replayed.err;
      const double step = json::parse(simulated.out).at("step_time_s");
      EXPECT_NEAR(json::parse(replayed.out).at("step_time_s").get<double>(), step, 1e-3 * step) << point;
    }
  }
}

TEST_F(ReplayTest, ExecutedTimelineIsTheModes) {
  write("study.yaml", kSmallStudy);
  const std::vector<std::string> simulate = {"simulate",   "study.yaml", "--point", kPoint,
                                             "--timeline", "step.json",  "--json"};
  ASSERT_EQ(run(simulate).code, 0);
  EXPECT_FALSE(json::parse(read_file(work() / "step.json")).at("otherData").contains("ends_last"));
  std::vector<std::string> flattened = simulate;
  flattened.insert(flattened.end(), {"--mode", "flattened", "--force"});
  const Finished finished = run(flattened);
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json timeline = json::parse(read_file(work() / "step.json"));
  double end = 0;
  for (const json& event : timeline.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    end = std::max(end, event.at("ts").get<double>() + event.at("dur").get<double>());
  }
  const double step = json::parse(finished.out).at("step_time_s");
  EXPECT_NEAR(end * 1e-6, step, 1e-6 * step);
  EXPECT_EQ(timeline.at("otherData").at("ranks"), 8);
}

TEST_F(ReplayTest, TracesOfAnotherRunAreNotMixed) {
  export_step("traces");
  const Finished again = run({"simulate", "study.yaml", "--point", kPoint, "--chakra", "traces"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(contains(again.err, "holds files already")) << again.err;
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
  EXPECT_EQ(run({"replay", "traces", "--cluster", "dgx-a100", "--order", "random"}).code, 2);
  EXPECT_EQ(run({"replay", "traces", "--cluster", "dgx-a100", "--stack", "megatron"}).code, 2);
  const Finished small = run({"replay", "traces", "--cluster", "dgx-a100", "--gpus", "4"});
  EXPECT_EQ(small.code, 2);
  EXPECT_TRUE(contains(small.err, "traces of 8 ranks, the fabric has 4 GPUs")) << small.err;
  write("inference.yaml", kInferenceStudy);
  const Finished serving = run({"simulate", "inference.yaml", "--chakra", "other"});
  EXPECT_EQ(serving.code, 2);
  EXPECT_TRUE(contains(serving.err, "requests being served are not written as traces")) << serving.err;
  const Finished drawing = run({"simulate", "inference.yaml", "--timeline", "other"});
  EXPECT_EQ(drawing.code, 2);
  EXPECT_TRUE(contains(drawing.err, "the study is of servers in their steady state")) << drawing.err;
  for (const std::string& err : {serving.err, drawing.err}) EXPECT_FALSE(contains(err, "pipeline")) << err;
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
