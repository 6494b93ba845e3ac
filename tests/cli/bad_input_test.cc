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
  EXPECT_TRUE(contains(finished.err, "and 900 more like these\nshardscape: 1000 problems;")) << finished.err;
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

}  // namespace
}  // namespace shardscape::cli
