// Does bad input end with a clear, located message, exit code 2 and nothing written?
#include <algorithm>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

class BadInputTest : public ProgramTest {
 protected:
  /// The small study with one text replaced by another.
  std::string changed(const std::string& what, const std::string& with) {
    std::string text = kSmallStudy;
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), with);
  }
};

struct BadStudy {
  const char* what;
  const char* with;
  const char* located;  ///< how one of the lines starts
  const char* says;
};

TEST_F(BadInputTest, StudiesAreRefusedWithPlaceAndRemedy) {
  const std::vector<BadStudy> cases = {
      {"model: llama3.1-8b", "model: llama3.1-9b", "study.yaml:2:8: model: ", "llama3.1-8b"},
      {"cluster: dgx-a100", "cluster: dgx-a10", "study.yaml:3:10: cluster: ", "dgx-a100"},
      {"stack: megatron-lm", "stak: megatron-lm", "study.yaml:5:1: ", "stack"},
      {"gpus: 8", "gpus: 8 GB", "study.yaml:4:7: gpus: ", ""},
      {"data_parallel: fill", "data_parallel: [3]", "study.yaml:8:3: space: ", "8"},
      {"recompute: [none", "recompute: [non", "study.yaml:13:15: ", "none"},
      {"objectives: [step_time_s", "objectives: [step_time", "study.yaml:17:14: ", "step_time_s"},
      {"objectives: [step_time_s", "objectives: [ttft_s", "study.yaml", "ttft_s"},
  };
  for (const BadStudy& c : cases) {
    write("study.yaml", changed(c.what, c.with));
    for (const char* command : {"sweep", "check", "simulate"}) {
      std::vector<std::string> arguments = {command, "study.yaml"};
      if (std::string(command) == "sweep") arguments.insert(arguments.end(), {"-o", "out.h5"});
      const Finished finished = run(arguments);
      EXPECT_EQ(finished.code, 2) << command << " " << c.with << "\n" << finished.err;
      EXPECT_TRUE(contains("\n" + finished.err, "\n" + std::string(c.located))) << finished.err;
      EXPECT_TRUE(contains(finished.err, c.says)) << finished.err;
      EXPECT_EQ(finished.out, "") << command;
      EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
    }
  }
}

TEST_F(BadInputTest, EveryProblemIsReportedAtOnce) {
  std::string text = changed("model: llama3.1-8b", "model: nobody");
  text += "colour: blue\n";
  write("study.yaml", text);
  const Finished finished = run({"sweep", "study.yaml", "-o", "out.h5"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(contains(finished.err, "study.yaml:2:8:")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "study.yaml:18:1:")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "2 problems")) << finished.err;
}

TEST_F(BadInputTest, CommandLineSaysWhatWasMeant) {
  write("study.yaml", kSmallStudy);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"swep", "study.yaml"}, "did you mean 'sweep'"},
      {{"sweep", "study.yaml"}, "--output is required"},
      {{"sweep", "study.yaml", "-o", "out.h5", "--shard", "0/4"}, "is not I/N"},
      {{"sweep", "study.yaml", "-o", "out.h5", "--shard", "5/4"}, "is not I/N"},
      {{"sweep", "study.yaml", "-o", "out.h5", "--progress", "jsn"}, "did you mean 'json'"},
      {{"sweep", "study.yaml", "-o", "out.h5", "--threads", "0"}, "--threads"},
      {{"sweep", "study.yaml", "-o", "out.h5", "--resume", "--force"}, "--resume"},
      {{"sweep", "study.yaml", "-o", "out.h5", "--set", "workload.global_bath=3"}, "global_batch"},
      {{"sweep", "absent.yaml", "-o", "out.h5"}, "absent.yaml"},
      {{"simulate", "study.yaml", "--point", "tp=3"}, "must be the number of GPUs, 8"},
      {{"simulate", "study.yaml", "--point", "tq=2,mbs=x"}, "did you mean 'tp'"},
      {{"simulate", "study.yaml", "--mode", "flat"}, "hierarchical"},
      {{"simulate", "study.yaml", "--fault", "0-1=0.5"}, "there is no such link"},
      {{"simulate", "study.yaml", "--fault", "0-8=1.5"}, "0 < DERATE <= 1"},
      {{"simulate", "study.yaml", "--fault", "0-8=gone"}, "LINK=dead"},
      {{"simulate", "study.yaml", "--fault", "nvlnk: 0-8=dead"}, "0 -> switch 0"},
      {{"simulate", "study.yaml", "--set",
        "stack={name: s, communication: {bucket: 1 GB, algorithms: [rng]}}"},
       "ring"},
      {{"simulate", "study.yaml", "--set",
        "stack={name: s, communication: {bucket: 1 GB, algorithms: [pairwise]}}"},
       "has no effect"},
      {{"simulate", "study.yaml", "--set",
        "stack={name: s, communication: {bucket: 1 GB, algorithms: ring}}"},
       "auto"},
      {{"presets", "a100-sxm-80g"}, "did you mean 'a100-sxm-80gb'"},
      {{"presets", "--presets", "absent"}, "absent"},
      {{}, "subcommand"},
  };
  for (const auto& [arguments, says] : cases) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.code, 2) << says << "\n" << finished.err;
    EXPECT_TRUE(contains(finished.err, says)) << says << " not in\n" << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
  }
}

TEST_F(BadInputTest, ExistingOutputIsNeverTouchedUnasked) {
  write("study.yaml", kSmallStudy);
  write("out.h5", "precious");
  const Finished finished = run({"sweep", "study.yaml", "-o", "out.h5"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(contains(finished.err, "--force")) << finished.err;
  EXPECT_EQ(read_file(work() / "out.h5"), "precious");

  fs::create_directory(work() / "other.h5.parts");
  const Finished parts = run({"sweep", "study.yaml", "-o", "other.h5"});
  EXPECT_EQ(parts.code, 2);
  EXPECT_TRUE(contains(parts.err, "--resume")) << parts.err;
  EXPECT_TRUE(fs::is_empty(work() / "other.h5.parts"));

  EXPECT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--force", "--threads", "1"}).code, 0);
  EXPECT_NE(read_file(work() / "out.h5"), "precious");
}

TEST_F(BadInputTest, ResumingAnotherStudyIsRefused) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5"}).code, 0);
  const std::string before = read_file(work() / "out.h5");
  const Finished same = run({"sweep", "study.yaml", "-o", "out.h5", "--resume"});
  EXPECT_EQ(same.code, 0);
  EXPECT_TRUE(contains(same.err, "complete already")) << same.err;
  const Finished other =
      run({"sweep", "study.yaml", "-o", "out.h5", "--resume", "--set", "workload.global_batch=64"});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err, "another study")) << other.err;
  EXPECT_EQ(read_file(work() / "out.h5"), before);
}

TEST_F(BadInputTest, OutputThatCannotBeWrittenIsAnEnvironmentError) {
  write("study.yaml", kSmallStudy);
  const Finished finished = run({"sweep", "study.yaml", "-o", "no/such/folder/out.h5"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_TRUE(contains(finished.err, "no/such/folder")) << finished.err;
  const Finished folder = run({"sweep", "study.yaml", "-o", work().string(), "--force"});
  EXPECT_EQ(folder.code, 1);
  EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
}

}  // namespace
}  // namespace shardscape::cli
