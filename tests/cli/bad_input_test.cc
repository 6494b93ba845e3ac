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

TEST_F(BadInputTest, ReferenceIsRefusedWhereItMeansNothing) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--reference"}).code, 0);
  const auto before = left_behind();
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"top", "out.h5"},
                                             {"verify", "out.h5"},
                                             {"diff", "out.h5", "out.h5"},
                                             {"report", "out.h5", "-o", "out.html"},
                                             {"export", "out.h5", "--csv", "out.csv"},
                                             {"merge", "out.h5", "-o", "all.h5"},
                                             {"presets"},
                                             {"gemm", "64", "64", "64", "--device", "a100-sxm-80gb"},
                                             {"calibrate", "--list"}}) {
    std::vector<std::string> with = words;
    with.emplace_back("--reference");
    const Finished finished = run(with);
    EXPECT_EQ(finished.code, 2) << words[0];
    EXPECT_TRUE(contains(finished.err, "--reference: has no effect ")) << words[0] << finished.err;
    EXPECT_EQ(left_behind(), before) << words[0];
    EXPECT_EQ(contains(run({words[0], "--help"}).out, "No memos"), words[0] == "calibrate") << words[0];
  }
}

TEST_F(BadInputTest, LongListsOfProblemsEnd) {
  std::string text = kSmallStudy;
  for (int i = 0; i < 1000; ++i) text += "unknown_" + std::to_string(i) + ": 1\n";
  write("study.yaml", text);
  const Finished finished = run({"check", "study.yaml"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(
      contains(finished.err, "and more than 100 more like these\nshardscape: more than 200 problems;"))
      << finished.err;
  EXPECT_EQ(std::ranges::count(finished.err, '\n'), 100 + 2);
}

TEST_F(BadInputTest, FilesForOtherProgramsHoldNamesAsText) {
  std::string text = kSmallStudy;
  text += "hardware: {variant: {\"=1+1\": {}, \"+2\": {device.hbm.bandwidth: 3 TB/s}}}\n";
  write("study.yaml", text);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5"}).code, 0);
  // A formula is text with an apostrophe before it; a name that is a number stays one.
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"export", "out.h5", "--csv", "-"}, {"top", "out.h5", "-n", "200", "--format", "csv"}}) {
    const Finished csv = run(words);
    ASSERT_EQ(csv.code, 0) << csv.err;
    EXPECT_TRUE(contains(csv.out, ",\"'=1+1\",")) << words[0];
    EXPECT_FALSE(contains(csv.out, ",=1+1")) << words[0];
    EXPECT_TRUE(contains(csv.out, ",+2,")) << words[0];
  }
  EXPECT_TRUE(contains(run({"top", "out.h5", "-n", "200", "--format", "json"}).out, "\"=1+1\""));
}

TEST_F(BadInputTest, NamesThatAreNoUtf8ReachEveryJsonWriter) {
  const std::string name = "sm\xff.yaml";  // file names may hold any bytes
  write(name, kSmallStudy);
  const Finished json = run({"simulate", name, "--json", "--timeline", "t.json"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_TRUE(nlohmann::json::accept(json.out));
  EXPECT_TRUE(nlohmann::json::accept(read_file(work() / "t.json")));
  const Finished sweep = run({"sweep", name, "-o", "o\xff.h5", "--progress", "json"});
  EXPECT_EQ(sweep.code, 0) << sweep.err;
  EXPECT_TRUE(contains(sweep.out, "\"output\":\"o\xef\xbf\xbd.h5\"")) << sweep.out;
  // Without a title the file's name would be it, and result files hold text.
  const std::string untitled = std::string(kSmallStudy).substr(std::string(kSmallStudy).find('\n') + 1);
  write(name, untitled);
  const Finished refused = run({"check", name});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "give the study a title")) << refused.err;
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
  EXPECT_EQ(folder.code, 2);
  EXPECT_TRUE(contains(folder.err, "is a folder")) << folder.err;
  EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
}

TEST_F(BadInputTest, WhatAStudyLacksIsSaidWithItsPlace) {
  write("study.yaml", kSmallStudy);
  write("serving.yaml", kInferenceStudy);
  std::string many =
      changed("virtual_stages: [2, 4]",
              "virtual_stages: {from: 2, to: 300}\n"
              "  context_parallel: divisors\n"
              "  rank_order: [tp-cp-dp-pp, tp-pp-cp-dp, cp-tp-dp-pp, dp-tp-cp-pp, pp-tp-cp-dp]");
  for (const auto& [few, all] :
       {std::pair("gpus: 8", "gpus: 15120"), std::pair("batch: 32", "batch: 15120"),
        std::pair("tensor_parallel: powers_of_two", "tensor_parallel: divisors"),
        std::pair("pipeline_parallel: powers_of_two", "pipeline_parallel: divisors")})
    many.replace(many.find(few), std::string(few).size(), all);
  write("many.yaml", many);
  write("stack.yaml", "base: vllm\nname: mine\ncommunication: {dispatch_sms: 10}\n");
  for (int i = 0; i < 66; ++i)
    write("c" + std::to_string(i) + ".yaml", "name: c\nbase: ./c" + std::to_string(i + 1) + ".yaml\n");
  const auto says = [&](const std::vector<std::string>& words, const std::string& what) {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 2) << words.back();
    EXPECT_TRUE(contains(finished.err, what)) << finished.err;
  };
  says({"capacity", "study.yaml"}, "study.yaml:6:1: workload: capacity is of requests");
  says({"capacity", "serving.yaml"}, "serving.yaml:6:1: workload: capacity is of requests");
  says({"sweep", "many.yaml", "-o", "out.h5"}, "many.yaml:7:1: space: makes too many");
  says({"check", "study.yaml", "--set", "gpus={a: b}"}, "not a map with the key \"a\"");
  says({"check", "serving.yaml", "--set", "stack=stack.yaml"}, "did you mean \"experts.dispatch_sms\"?");
  says({"check", "serving.yaml", "--set", "hardware={stack.communication.dispatch_sms: [10, 20]}"},
       "did you mean \"stack.experts.dispatch_sms\"?");
  write("columns.yaml",
        std::string(kSmallStudy) + "store:\n  rows: {pareto: [ttft_s]}\n  columns:\n  - mfu\n  - ttft_s\n");
  says({"check", "columns.yaml"}, "columns.yaml:22:5: store.columns: 'ttft_s' has no meaning for training");
  says({"check", "columns.yaml"}, "columns.yaml:19:19: store.rows.pareto: 'ttft_s' has no");
  const std::string chain = run({"check", "serving.yaml", "--set", "stack=c0.yaml"}).err;
  EXPECT_TRUE(contains(chain, "c63.yaml:2:7: base: is file 65")) << chain;
  EXPECT_FALSE(contains(chain, "./c63")) << chain;
  says({"check", "serving.yaml", "--set", "constraints=[tp <= 4 /s]"}, "which 'tp' is not");
  // Axes are named by their names and those of their columns, also under `space`: no other part has them.
  says({"check", "study.yaml", "--set", "tp=4"}, "tp: unknown key; did you mean \"space.tp\"?");
  says({"check", "study.yaml", "--set", "device=h100-sxm-80gb"}, "did you mean \"hardware.device\"?");
  says({"check", "study.yaml", "--set", "space.workload.tp=4"}, "space.workload: unknown key");
  says({"check", "study.yaml", "--set", "space.tensor.parallel=4"}, "space.tensor: unknown key");
  for (const char* key : {"workload.tp", "hardware.tensor_parallel", "tensor.parallel"})
    says({"simulate", "study.yaml", "--point", std::string(key) + "=4"}, "unknown key");
  EXPECT_EQ(run({"simulate", "study.yaml", "--point", "space.tp=4,tensor_parallel=4"}).code, 2);
  EXPECT_EQ(run({"simulate", "study.yaml", "--point", "space.tp=4"}).code, 0);
}

TEST_F(BadInputTest, BudgetsAreTimesOrWholePoints) {
  write("study.yaml", kSmallStudy);
  const auto search = [&](const char* budget) {
    return run({"search", "study.yaml", "--progress", "none", "--budget", budget}).code;
  };
  for (const char* good : {"500ms", "2 s", "1min", "1 point", "20 points"})
    EXPECT_EQ(search(good), 0) << good;
  for (const char* bad : {"1.5 points", "-1s", "3 GB", "points", "5"}) EXPECT_EQ(search(bad), 2) << bad;
}

}  // namespace
}  // namespace shardscape::cli
